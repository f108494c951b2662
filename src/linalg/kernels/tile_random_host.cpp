// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/tile_random_host.cpp: random elements from their place in the matrix.
#include "linalg/kernels/region.h"
#include "linalg/kernels/uniform.h"

namespace quadriga::kernels {
namespace {

template <class T>
T element(std::uint64_t key, std::int64_t row) noexcept {
  T value;
  uniform(element_bits(key, row), value);
  return value;
}

}  // namespace

template <class T>
void fill_random(const RandomMatrix& random, KernelTile<T> c) {
  const std::int64_t diagonal = random.first_row - random.first_col;
  for (int j = 0; j < c.cols; ++j) {
    const std::int64_t column = random.first_col + j;
    const std::uint64_t key = column_key(random.seed, column);
    const Part own = random.hermitian ? Part::lower : Part::all;
    const Rows rows = rows_in({own, diagonal}, c.rows, j);
    for (int i = rows.begin; i < rows.end; ++i) c(i, j) = element<T>(key, random.first_row + i);
    // Above the diagonal of a hermitian matrix: the conjugate of the element below it.
    for (int i = 0; i < rows.begin; ++i)
      c(i, j) = conjugate(element<T>(column_key(random.seed, random.first_row + i), column));
    const std::int64_t crossing = j - diagonal;
    if (crossing < 0 || crossing >= c.rows) continue;
    T& on_diagonal = c.column(j)[crossing];
    if (random.hermitian) on_diagonal = std::real(on_diagonal);
    on_diagonal += static_cast<decltype(std::real(T{}))>(random.on_diagonal);
  }
}

template void fill_random<float>(const RandomMatrix&, KernelTile<float>);
template void fill_random<double>(const RandomMatrix&, KernelTile<double>);
template void fill_random<std::complex<float>>(const RandomMatrix&,
                                               KernelTile<std::complex<float>>);
template void fill_random<std::complex<double>>(const RandomMatrix&,
                                                KernelTile<std::complex<double>>);

}  // namespace quadriga::kernels
