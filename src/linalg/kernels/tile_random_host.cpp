// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/tile_random_host.cpp: random elements from their place in the matrix.
#include "base/random.h"
#include "linalg/kernels/region.h"

namespace quadriga::kernels {
namespace {

constexpr std::uint64_t golden = 0x9e3779b97f4a7c15u;

constexpr void uniform(std::uint64_t bits, double& out) noexcept {
  out = static_cast<double>(bits >> 11) * 0x1p-53 - 0.5;
}
constexpr void uniform(std::uint64_t bits, float& out) noexcept {
  out = static_cast<float>(static_cast<std::int32_t>(bits >> 40)) * 0x1p-24f - 0.5f;
}
template <class Real>
void uniform(std::uint64_t bits, std::complex<Real>& out) noexcept {
  Real real;
  Real imag;
  uniform(bits, real);
  uniform(mix(bits), imag);
  out = {real, imag};
}

/// Each column has a key; the elements of a column are one splittable stream.
std::uint64_t column_key(const RandomMatrix& random, std::int64_t column) noexcept {
  return mix(mix(random.seed) + golden * static_cast<std::uint64_t>(column));
}

template <class T>
T element(std::uint64_t key, std::int64_t row) noexcept {
  T value;
  uniform(mix(key + golden * static_cast<std::uint64_t>(row)), value);
  return value;
}

}  // namespace

template <class T>
void fill_random(const RandomMatrix& random, Tile<T> c) {
  const std::int64_t diagonal = random.first_row - random.first_col;
  for (int j = 0; j < c.cols; ++j) {
    const std::int64_t column = random.first_col + j;
    const std::uint64_t key = column_key(random, column);
    const Part own = random.hermitian ? Part::lower : Part::all;
    const Rows rows = rows_in({own, diagonal}, c.rows, j);
    for (int i = rows.begin; i < rows.end; ++i) c(i, j) = element<T>(key, random.first_row + i);
    // Above the diagonal of a hermitian matrix: the conjugate of the element below it.
    for (int i = 0; i < rows.begin; ++i)
      c(i, j) = conjugate(element<T>(column_key(random, random.first_row + i), column));
    const std::int64_t crossing = j - diagonal;
    if (crossing < 0 || crossing >= c.rows) continue;
    T& on_diagonal = c.column(j)[crossing];
    if (random.hermitian) on_diagonal = std::real(on_diagonal);
    on_diagonal += static_cast<decltype(std::real(T{}))>(random.on_diagonal);
  }
}

template void fill_random<float>(const RandomMatrix&, Tile<float>);
template void fill_random<double>(const RandomMatrix&, Tile<double>);
template void fill_random<std::complex<float>>(const RandomMatrix&, Tile<std::complex<float>>);
template void fill_random<std::complex<double>>(const RandomMatrix&, Tile<std::complex<double>>);

}  // namespace quadriga::kernels
