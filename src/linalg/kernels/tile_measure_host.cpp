// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/tile_measure_host.cpp: norms and checks of a tile on the host.
#include "linalg/kernels/tile_measure.h"

#include "linalg/kernels/region.h"

#include <quadriga/error.h>

#include <cmath>

namespace quadriga::kernels {
namespace {

template <class T>
double absolute(const T& value) noexcept {
  if constexpr (is_complex<T>)
    return std::hypot(static_cast<double>(value.real()), static_cast<double>(value.imag()));
  else
    return std::fabs(static_cast<double>(value));
}

template <class T>
double square(const T& value) noexcept {
  const double real = std::real(value);
  const double imag = std::imag(value);
  return real * real + imag * imag;
}

template <class T>
bool finite(const T& value) noexcept {
  return std::isfinite(std::real(value)) && std::isfinite(std::imag(value));
}

/// Calls element(a(i,j), i, j) for each element of a region, by columns.
template <class T, class Element>
void visit(KernelTile<const T> a, const TileRegion& region, Element element) {
  for (int j = 0; j < a.cols; ++j) {
    const Rows rows = rows_in(region, a.rows, j);
    const T* column = a.column(j);
    for (int i = rows.begin; i < rows.end; ++i) element(column[i], i, j);
  }
}

}  // namespace

template <class T>
double max_abs(KernelTile<const T> a, TileRegion region) {
  double largest = 0;
  visit(a, region, [&](const T& value, int, int) {
    const double size = absolute(value);
    if (!(size <= largest)) largest = std::isnan(largest) ? largest : size;
  });
  return largest;
}

template <class T>
double sum_of_squares(KernelTile<const T> a, TileRegion region) {
  double sum = 0;
  visit(a, region, [&](const T& value, int, int) { sum += square(value); });
  return sum;
}

template <class T>
void add_column_sums(KernelTile<const T> a, std::span<double> sums, TileRegion region) {
  visit(a, region, [&](const T& value, int, int j) { sums[j] += absolute(value); });
}

template <class T>
void add_row_sums(KernelTile<const T> a, std::span<double> sums, TileRegion region) {
  visit(a, region, [&](const T& value, int i, int) { sums[i] += absolute(value); });
}

template <class T>
void add_column_squares(KernelTile<const T> a, std::span<double> squares, TileRegion region) {
  visit(a, region, [&](const T& value, int, int j) { squares[j] += square(value); });
}

template <class T>
double sum_log_diagonal(KernelTile<const T> a) {
  double sum = 0;
  for (int i = 0; i < std::min(a.rows, a.cols); ++i)
    sum += std::log(static_cast<double>(std::real(a(i, i))));
  return sum;
}

template <class T>
Place first_not_finite(KernelTile<const T> a, TileRegion region) {
  for (int j = 0; j < a.cols; ++j) {
    const Rows rows = rows_in(region, a.rows, j);
    for (int i = rows.begin; i < rows.end; ++i)
      if (!finite(a(i, j))) return {i, j};
  }
  return {};
}

template <class T>
Place first_not_hermitian(KernelTile<const T> a, KernelTile<const T> b, double relative,
                          double absolute_) {
  require(a.rows == b.cols && a.cols == b.rows,
          "first_not_hermitian: B must have the shape of A's transpose");
  for (int j = 0; j < a.cols; ++j)
    for (int i = 0; i < a.rows; ++i) {
      const T other = conjugate(b(j, i));
      if (a(i, j) == other) continue;
      const double limit = absolute_ + relative * absolute(other);
      if (!(absolute(a(i, j) - other) <= limit)) return {i, j};
    }
  return {};
}

#define QUADRIGA_INSTANTIATE(T)                                                            \
  template double max_abs<T>(KernelTile<const T>, TileRegion);                             \
  template double sum_of_squares<T>(KernelTile<const T>, TileRegion);                      \
  template void add_column_sums<T>(KernelTile<const T>, std::span<double>, TileRegion);    \
  template void add_row_sums<T>(KernelTile<const T>, std::span<double>, TileRegion);       \
  template void add_column_squares<T>(KernelTile<const T>, std::span<double>, TileRegion); \
  template double sum_log_diagonal<T>(KernelTile<const T>);                                \
  template Place first_not_finite<T>(KernelTile<const T>, TileRegion);                     \
  template Place first_not_hermitian<T>(KernelTile<const T>, KernelTile<const T>, double, double);
QUADRIGA_INSTANTIATE(float)
QUADRIGA_INSTANTIATE(double)
QUADRIGA_INSTANTIATE(std::complex<float>)
QUADRIGA_INSTANTIATE(std::complex<double>)
#undef QUADRIGA_INSTANTIATE

}  // namespace quadriga::kernels
