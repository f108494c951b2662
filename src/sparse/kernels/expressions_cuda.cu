// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/expressions_cuda.cu: arithmetic of distributed vectors and scalars on a GPU. A
// block of threads sums a block of rows.
#include <quadriga/error.h>

#include <string>

#include "base/number_type.h"
#include "sparse/kernels/expression_codelets.h"
#include "sparse/kernels/expression_cuda.h"
#include "sparse/kernels/sums_device.cuh"

namespace quadriga::sparse {
namespace cuda {
namespace {

template <class N>
struct FromScalar {
  static __device__ N number(const ScalarValue& value) { return static_cast<N>(value.real); }
};
template <class Real>
struct FromScalar<ComplexNumber<Real>> {
  static __device__ ComplexNumber<Real> number(const ScalarValue& value) {
    return {static_cast<Real>(value.real), static_cast<Real>(value.imag)};
  }
};

template <class N>
__global__ void combine_rows(TermArrays<N> a) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (row >= a.rows) return;
  N total{};
  for (int i = 0; i < a.count; ++i) {
    const N factor = FromScalar<N>::number(coefficient_of(a.terms[i], a.scalars[i]));
    const N term = product(factor, a.vectors[i][row]);
    total = i == 0 ? term : sum(total, term);
  }
  a.out[row] = total;
}

template <class N>
__global__ void multiply_rows(std::int64_t rows, const N* x, const N* y, N* out) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (row < rows) out[row] = product(x[row], y[row]);
}

template <class Real>
__device__ double dot_imaginary(Real, Real) {
  return 0;
}
template <class Real>
__device__ double dot_imaginary(ComplexNumber<Real> x, ComplexNumber<Real> y) {
  return dot(x.real, y.imag) - dot(x.imag, y.real);
}

template <class N>
__global__ void __launch_bounds__(threads)
    sum_rows(BlockedRows all, const N* x, const N* y, double* sums, bool has_imaginary) {
  const std::int64_t first = blockIdx.x * all.block_rows;
  const std::int64_t last = min(first + all.block_rows, all.rows);
  double real = 0;
  double imaginary = 0;
  for (std::int64_t row = first + threadIdx.x; row < last; row += threads) {
    real += dot(x[row], y[row]);
    imaginary += dot_imaginary(x[row], y[row]);
  }
  real = sum_of_block(real);
  imaginary = sum_of_block(imaginary);
  if (threadIdx.x > 0) return;
  sums[blockIdx.x] = real;
  if (has_imaginary) sums[all.blocks + blockIdx.x] = imaginary;
}

__global__ void __launch_bounds__(threads)
    add_parts(SumTable table, ScalarValue* out, bool has_imaginary) {
  const double real = sum_of_parts(table, 0, 0);
  const double imaginary = has_imaginary ? sum_of_parts(table, 1, 0) : 0;
  if (threadIdx.x == 0) *out = {real, imaginary};
}

__global__ void compute_one(ScalarParams params, ScalarValue* out, const ScalarValue* left,
                            const ScalarValue* right) {
  *out = value_of(params, left ? *left : params.left, right ? *right : params.right);
}

cudaStream_t stream_of(const Arguments& arguments) {
  return static_cast<cudaStream_t>(arguments.stream);
}

template <class N>
Kernel combine_kernel() {
  return [](const Arguments& a) {
    const TermArrays<N> arrays = term_arrays<N>(a);
    if (arrays.rows == 0) return;
    combine_rows<<<grid_for(arrays.rows), threads, 0, stream_of(a)>>>(arrays);
    check_launch("a sum of vectors");
  };
}

template <class N>
Kernel multiply_kernel() {
  return [](const Arguments& a) {
    const std::int64_t rows = a.operands[0].rows;
    if (rows == 0) return;
    multiply_rows<<<grid_for(rows), threads, 0, stream_of(a)>>>(
        rows, a.operands[1].as<const N>(), a.operands[2].as<const N>(), a.operands[0].as<N>());
    check_launch("a product of vectors by elements");
  };
}

template <class N>
Kernel sums_kernel(bool has_imaginary) {
  return [=](const Arguments& a) {
    const auto rows = a.param<BlockedRows>();
    if (rows.blocks == 0) return;
    sum_rows<<<static_cast<unsigned>(rows.blocks), threads, 0, stream_of(a)>>>(
        rows, a.operands[1].as<const N>(), a.operands[2].as<const N>(), a.operands[0].as<double>(),
        has_imaginary);
    check_launch("the sums of a dot product");
  };
}

}  // namespace
}  // namespace cuda

Kernel combine_on_cuda(DType dtype) {
  return with_number_type(dtype,
                          [&]<class T>() { return cuda::combine_kernel<cuda::DeviceType<T>>(); });
}

Kernel multiply_elements_on_cuda(DType dtype) {
  return with_number_type(dtype,
                          [&]<class T>() { return cuda::multiply_kernel<cuda::DeviceType<T>>(); });
}

Kernel sum_blocks_on_cuda(DType dtype) {
  const bool has_imaginary = dtype == DType::complex64 || dtype == DType::complex128;
  return with_number_type(
      dtype, [=]<class T>() { return cuda::sums_kernel<cuda::DeviceType<T>>(has_imaginary); });
}

Kernel total_on_cuda(const std::vector<std::int64_t>& blocks, bool is_complex) {
  return [=](const Arguments& a) {
    require(blocks.size() <= cuda::SumTable::most_parts,
            "a matrix in " + std::to_string(blocks.size()) + " parts; expected at most " +
                std::to_string(cuda::SumTable::most_parts) + " on GPUs");
    cuda::SumTable table;
    table.parts = static_cast<int>(blocks.size());
    for (std::size_t part = 0; part < blocks.size(); ++part) {
      table.blocks_before[part + 1] = table.blocks_before[part] + blocks[part];
      table.sums[part] = a.operands[1 + part].as<const double>();
    }
    cuda::add_parts<<<1, cuda::threads, 0, cuda::stream_of(a)>>>(
        table, a.operands[0].as<ScalarValue>(), is_complex);
    cuda::check_launch("a dot product");
  };
}

Kernel scalar_on_cuda() {
  return [](const Arguments& a) {
    const auto params = a.param<ScalarParams>();
    std::size_t operand = 1;
    const auto next = [&](bool has) {
      return has ? a.operands[operand++].as<const ScalarValue>() : nullptr;
    };
    const ScalarValue* const left = next(params.has_left);
    const ScalarValue* const right = next(params.has_right);
    cuda::compute_one<<<1, 1, 0, cuda::stream_of(a)>>>(params, a.operands[0].as<ScalarValue>(),
                                                       left, right);
    cuda::check_launch("a scalar");
  };
}

}  // namespace quadriga::sparse
