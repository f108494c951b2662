// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/expressions_host.cpp: arithmetic of vectors on the host.
#include "sparse/kernels/expressions.h"

#include <algorithm>
#include <complex>

#include "sparse/kernels/host_sums.h"

namespace quadriga::sparse {
namespace {

template <class T>
T number_of(const ScalarValue& value) noexcept {
  if constexpr (is_complex<T>)
    return {static_cast<Real<T>>(value.real), static_cast<Real<T>>(value.imag)};
  else
    return static_cast<T>(value.real);
}

/// With the number of terms known, so that the inner loop is none.
template <class T, int count>
void combine_terms(const TermArrays<T>& a) {
  T factors[count];
  for (int i = 0; i < count; ++i)
    factors[i] = number_of<T>(coefficient_of(a.terms[i], a.scalars[i]));
  for (std::int64_t row = 0; row < a.rows; ++row) {
    T sum = multiplied(factors[0], a.vectors[0][row]);
    for (int i = 1; i < count; ++i) sum += multiplied(factors[i], a.vectors[i][row]);
    a.out[row] = sum;
  }
}

/// Im(x^H*y) of a block.
template <class T>
double dot_imaginary(RowRange rows, const T* x, const T* y) {
  return sum_over<T>(rows, [=](std::int64_t row, std::int64_t part) {
    const auto of_x = static_cast<double>(as_reals(x)[2 * row + part]);
    const auto of_y = static_cast<double>(as_reals(y)[2 * row + 1 - part]);
    return part == 0 ? of_x * of_y : -(of_x * of_y);
  });
}

}  // namespace

template <class T>
void combine(const TermArrays<T>& a) {
  static_assert(most_terms == 4);
  switch (a.count) {
    case 0:
      std::fill_n(a.out, a.rows, T{});
      return;
    case 1:
      return combine_terms<T, 1>(a);
    case 2:
      return combine_terms<T, 2>(a);
    case 3:
      return combine_terms<T, 3>(a);
    default:
      return combine_terms<T, 4>(a);
  }
}

template <class T>
void multiply_elements(std::int64_t rows, const T* x, const T* y, T* out) {
  for (std::int64_t row = 0; row < rows; ++row) out[row] = multiplied(x[row], y[row]);
}

template <class T>
void sum_blocks(const BlockedRows& all, const T* x, const T* y, double* sums) {
  for (std::int64_t block = 0; block < all.blocks; ++block) {
    const std::int64_t first = block * all.block_rows;
    const RowRange rows{first, std::min(first + all.block_rows, all.rows)};
    sums[block] = dot(rows, x, y, 1, 0);
    if constexpr (is_complex<T>) sums[all.blocks + block] = dot_imaginary(rows, x, y);
  }
}

#define QUADRIGA_INSTANTIATE(T)                                          \
  template void combine(const TermArrays<T>&);                           \
  template void multiply_elements(std::int64_t, const T*, const T*, T*); \
  template void sum_blocks(const BlockedRows&, const T*, const T*, double*);
QUADRIGA_INSTANTIATE(float)
QUADRIGA_INSTANTIATE(double)
QUADRIGA_INSTANTIATE(std::complex<float>)
QUADRIGA_INSTANTIATE(std::complex<double>)
#undef QUADRIGA_INSTANTIATE

}  // namespace quadriga::sparse
