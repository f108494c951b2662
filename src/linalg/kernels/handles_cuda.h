// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/handles_cuda.h: what cuBLAS and cuSOLVER need for a stream, made once.
#pragma once

#include <cublas_v2.h>
#include <cusolverDn.h>
#include <quadriga/codelet.h>

#include <cstddef>
#include <memory>
#include <source_location>
#include <string_view>
#include <vector>

#include "linalg/kernels/stream_blas.h"

namespace quadriga::kernels::cuda {

class PlannedProducts;

void check(cublasStatus_t status, std::string_view call,
           std::source_location where = std::source_location::current());
void check(cusolverStatus_t status, std::string_view call,
           std::source_location where = std::source_location::current());

/// Words that a kernel writes and the host reads once its operation has ended; pinned.
class Words final : public ResultWords {
 public:
  Words();
  ~Words() override;
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;
  int* take() override;
  void give_back(int* word) override { unused_.push_back(word); }

 private:
  std::vector<int*> blocks_;
  std::vector<int*> unused_;
};

/// Handles of a stream with workspaces of their own, so that no call allocates or synchronizes.
/// Used by the thread that queues on the stream.
///
/// Errors: DeviceFull where there is no memory for one, so that variants ask for all that they need
///         before they queue anything.
class Handles {
 public:
  explicit Handles(cudaStream_t stream);
  ~Handles();
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  /// Set so that products of float32 and complex64 may, or may not, round factors to TF32.
  cublasHandle_t blas(bool allow_tf32 = false);
  /// On the same stream and workspace.
  PlannedProducts& products() noexcept { return *products_; }
  cusolverDnHandle_t solver();
  cusolverDnParams_t solver_params() const noexcept { return solver_params_; }
  /// Scratch for kernels of this stream: device memory that the next one on it may overwrite.
  /// Grows, in the stream's order, when more is asked for than ever before.
  void* scratch(std::size_t bytes);
  /// The same, or null when the device has no memory left.
  void* try_scratch(std::size_t bytes);
  /// The same for a call of cuSOLVER: cuBLAS's workspace where that is large enough, so that tiles
  /// of usual sizes allocate nothing.
  void* solver_scratch(std::size_t bytes);
  /// The same on the host, for calls that use it before they return.
  void* host_scratch(std::size_t bytes);
  Words& words() noexcept { return words_; }
  cudaStream_t stream() const noexcept { return stream_; }

 private:
  void open();
  void close() noexcept;

  cudaStream_t stream_;
  cublasHandle_t blas_ = nullptr;
  bool allows_tf32_ = false;
  cusolverDnHandle_t solver_ = nullptr;
  cusolverDnParams_t solver_params_ = nullptr;
  void* blas_workspace_ = nullptr;
  std::unique_ptr<PlannedProducts> products_;
  void* scratch_ = nullptr;
  std::size_t scratch_bytes_ = 0;
  std::vector<std::byte> host_scratch_;
  Words words_;
};

/// Those of the stream that a variant was called with; made at its first call, with its
/// device current.
std::shared_ptr<Handles> handles_of(const Arguments& arguments);

/// A variant that makes all of them for its stream: for set_preparation().
void prepare(const Arguments& arguments);

}  // namespace quadriga::kernels::cuda
