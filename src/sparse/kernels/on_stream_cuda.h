// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/on_stream_cuda.h: what LevelBodies computes with on a GPU.
#pragma once

#include "device/cuda/cuda_check.h"
#include "sparse/kernels/launches_cuda.h"
#include "sparse/kernels/level_bodies.h"

namespace quadriga::sparse {

template <class T>
struct OnStream {
  static cudaStream_t stream_of(const Arguments& arguments) {
    return static_cast<cudaStream_t>(arguments.stream);
  }
  /// What states say is known on the device only.
  static bool runs(const ColumnState*, std::int64_t) noexcept { return true; }
  static void multiply(const Arguments& arguments, const PartArrays<T>& a, const PartVectors<T>& v,
                       const ColumnState* states) {
    cuda::multiply<T>(stream_of(arguments), a, {0, a.shape().blocks}, v, states, nullptr);
  }
  static void relax(const Arguments& arguments, const PartArrays<T>& a, const PartVectors<T>& v,
                    const Relaxation& relaxation, const ColumnState* states) {
    cuda::relax(stream_of(arguments), a, v, relaxation, states);
  }
  static void correct(const Arguments& arguments, std::int64_t rows, const PartVectors<T>& v,
                      const ColumnState* states) {
    cuda::correct(stream_of(arguments), rows, v, states);
  }
  static void sum_products(const Arguments& arguments, const PartArrays<T>& a,
                           const PartVectors<T>& v, double* sums, const ColumnState* states) {
    cuda::sum_products(stream_of(arguments), a, v, states, sums);
  }
  static void gather(const Arguments& arguments, const PartArrays<T>& a, const T* vector,
                     std::int64_t columns, std::int64_t first, std::int64_t count, T* out) {
    cuda::gather(stream_of(arguments), a, vector, columns, first, count, false, out);
  }
  static void copy(const Arguments& arguments, T* to, const T* from, std::int64_t count) {
    quadriga::cuda::check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(count) * sizeof(T),
                                          cudaMemcpyDeviceToDevice, stream_of(arguments)),
                          "a copy within the device");
  }
};

}  // namespace quadriga::sparse
