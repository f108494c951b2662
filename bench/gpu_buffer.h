// SPDX-License-Identifier: BSD-3-Clause
// bench/gpu_buffer.h: device memory and times of references.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <limits>

#include "device/cuda/cuda_check.h"
#include "linalg/kernels/elements_cuda.h"
#include "line.h"

namespace quadriga::bench {

/// Memory of the current device that goes with its scope.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(std::size_t bytes) {
    cuda::check(cudaMalloc(&data_, bytes), "allocating device memory");
  }
  ~DeviceBuffer() { cudaFree(data_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  void* data() const { return data_; }
  double* doubles() const { return static_cast<double*>(data_); }

 private:
  void* data_ = nullptr;
};

/// Random columns of a matrix on the current device, from `first_col` on; SPD on request.
inline void fill_on_device(double* data, int rows, int cols, int first_col, bool positive) {
  kernels::RandomMatrix random{.seed = 1, .first_row = 0, .first_col = first_col};
  random.hermitian = positive;
  random.on_diagonal = positive ? rows : 0;
  kernels::cuda::fill_random<double>(nullptr, random, {data, rows, cols, rows});
}

/// Seconds of the fastest of some runs, each after its preparation.
template <class Prepare, class Work>
double best_of(int repeat, Prepare prepare, Work work) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < repeat; ++i) {
    prepare();
    const double begin = now();
    work();
    best = std::min(best, now() - begin);
  }
  return best;
}

}  // namespace quadriga::bench
