// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/blas_threads.h: how many threads the BLAS uses; one in a task, more only in
// references.
#pragma once

namespace quadriga::kernels {

/// Makes the BLAS run on the thread that calls it, for the whole process. The first call counts,
/// later ones do nothing, so that BlasThreads can raise the number meanwhile. Any thread.
void use_one_blas_thread();

/// Around calls of the BLAS, in the thread that makes them. OpenBLAS allocates a buffer for each
/// thread that is in it at once and keeps them; where the address space has no room for one, it
/// retries without end.
///
/// Errors: too_large if there is no room for another buffer, naming the limit of the process.
class BlasCall {
 public:
  BlasCall();
  ~BlasCall();
  BlasCall(const BlasCall&) = delete;
  BlasCall& operator=(const BlasCall&) = delete;
};

/// Lets the BLAS use its own threads while it lives: to measure a reference, with no task running.
class BlasThreads {
 public:
  explicit BlasThreads(int threads);
  ~BlasThreads();
  BlasThreads(const BlasThreads&) = delete;
  BlasThreads& operator=(const BlasThreads&) = delete;

 private:
  int before_;
};

/// The number of threads a call of the BLAS would use now.
int blas_threads() noexcept;

}  // namespace quadriga::kernels
