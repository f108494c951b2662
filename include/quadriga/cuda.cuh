// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/cuda.cuh: helpers for CUDA variants of codelets; for .cu files only.
#pragma once

#include <quadriga/codelet.h>
#include <quadriga/error.h>

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>

#ifndef __CUDACC__
#error "quadriga/cuda.cuh is for files that nvcc compiles"
#endif

namespace quadriga {

/// One operand in device code: element (i, j) is tile(i, j).
template <class T>
struct Tile {
  T* data = nullptr;
  long long rows = 0;
  long long cols = 0;
  long long row_step = 1;  ///< Between neighbours in a column, in elements.
  long long col_step = 0;  ///< Between neighbours in a row.

  Tile() = default;
  /// Errors: invalid_argument if elements of T are of another size than the view's.
  explicit Tile(const View& view)
      : data(view.as<T>()), rows(view.rows), cols(view.cols), col_step(view.ld) {
    require(size_of(view.dtype) == sizeof(T), "a tile's elements are of another type");
  }

  __host__ __device__ long long size() const { return rows * cols; }
  __host__ __device__ T& operator()(long long i, long long j) const {
    return data[i * row_step + j * col_step];
  }
};

/// The stream that a CUDA variant queues on.
inline cudaStream_t stream_of(const Arguments& arguments) {
  return static_cast<cudaStream_t>(arguments.stream);
}

namespace detail {

// One column of all elements if there are no gaps between columns.
template <class First, class... T>
void make_long(Tile<First>& first, Tile<T>&... others) {
  const auto is_dense = [](const auto& tile) { return tile.col_step == tile.rows; };
  if (!is_dense(first) || !(is_dense(others) && ...)) return;
  const auto lengthen = [](auto& tile) { tile.rows *= std::exchange(tile.cols, 1); };
  lengthen(first);
  (lengthen(others), ...);
}

template <class Functor, class First, class... T>
__global__ void for_each_element(Functor functor, Tile<First> first, Tile<T>... others) {
  const long long threads = static_cast<long long>(gridDim.x) * blockDim.x;
  const long long begin = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  for (long long j = blockIdx.y; j < first.cols; j += gridDim.y)
    for (long long i = begin; i < first.rows; i += threads) functor(first(i, j), others(i, j)...);
}

template <class Functor, class First, class... T>
void run_on_host(const Functor& functor, Tile<First> first, Tile<T>... others) {
  for (long long j = 0; j < first.cols; ++j)
    for (long long i = 0; i < first.rows; ++i) functor(first(i, j), others(i, j)...);
}

template <class Functor, class First, class... T>
void queue_on_device(cudaStream_t stream, const Functor& functor, Tile<First> first,
                     Tile<T>... others) {
  constexpr long long threads = 256;
  constexpr long long most_blocks = 65535;
  make_long(first, others...);
  if (first.size() == 0) return;
  const dim3 grid(
      static_cast<unsigned>(std::min((first.rows + threads - 1) / threads, most_blocks)),
      static_cast<unsigned>(std::min(first.cols, most_blocks)));
  for_each_element<<<grid, threads, 0, stream>>>(functor, first, others...);
}

template <class Functor, class... T, std::size_t... I>
void run_elementwise(const Arguments& arguments, std::index_sequence<I...>) {
  const auto& operands = arguments.operands;
  const auto fits = [&](const View& view) {
    return view.rows == operands[0].rows && view.cols == operands[0].cols;
  };
  require(operands.size() == sizeof...(T) && std::ranges::all_of(operands, fits),
          "an elementwise codelet's operands are of one shape");
  const auto functor = arguments.param<Functor>();
  if (arguments.stream == nullptr)
    run_on_host(functor, Tile<T>(operands[I])...);
  else
    queue_on_device(stream_of(arguments), functor, Tile<T>(operands[I])...);
}

}  // namespace detail

/// A codelet that calls a functor for each element of operands of one shape, on any device.
///
/// The functor is the struct passed to submit(): its members are the task's parameters, and its
/// operator(), const and `__host__ __device__`, takes a T& for each operand.
/// Types:   Functor is trivially copyable; T are the elements' types, const for read operands.
/// Errors:  invalid_argument, as the task's failure, if shapes or sizes of elements disagree.
template <class Functor, class... T>
Codelet elementwise(std::string name, std::vector<Access> access) {
  static_assert(std::is_trivially_copyable_v<Functor>, "a functor is copied as bytes");
  const auto variant = [](const Arguments& arguments) {
    detail::run_elementwise<Functor, T...>(arguments, std::index_sequence_for<T...>());
  };
  Codelet codelet;
  codelet.name = std::move(name);
  codelet.access = std::move(access);
  codelet.cpu = variant;
  codelet.cuda = variant;
  return codelet;
}

}  // namespace quadriga
