// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/blas_threads.cpp: OpenBLAS's global number of threads.
#include "linalg/kernels/blas_threads.h"

#include <cblas.h>
#include <quadriga/error.h>

namespace quadriga::kernels {

void use_one_blas_thread() {
  static const bool once = (openblas_set_num_threads(1), true);
  static_cast<void>(once);
}

BlasThreads::BlasThreads(int threads) {
  require(threads >= 1, "BlasThreads: threads must be at least 1");
  use_one_blas_thread();
  before_ = openblas_get_num_threads();
  openblas_set_num_threads(threads);
}

BlasThreads::~BlasThreads() { openblas_set_num_threads(before_); }

int blas_threads() noexcept { return openblas_get_num_threads(); }

}  // namespace quadriga::kernels
