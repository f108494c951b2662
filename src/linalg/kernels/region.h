// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/region.h: the rows of a column that lie in a region; shared by the
// element-wise kernels.
#pragma once

#include "linalg/kernels/tile_elements.h"

#include <algorithm>
#include <complex>

namespace quadriga::kernels {

/// Rows begin to end (not included) of one column.
struct Rows {
  int begin = 0;
  int end = 0;
};

constexpr Rows rows_in(const TileRegion& region, int rows, int column) noexcept {
  const std::int64_t crossing = column - region.diagonal;  // the row on the matrix's diagonal
  const auto clamp = [rows](std::int64_t row) {
    return static_cast<int>(std::clamp<std::int64_t>(row, 0, rows));
  };
  switch (region.part) {
    case Part::all:
      return {0, rows};
    case Part::lower:
      return {clamp(crossing), rows};
    case Part::strict_lower:
      return {clamp(crossing + 1), rows};
    case Part::upper:
      return {0, clamp(crossing + 1)};
    case Part::strict_upper:
      return {0, clamp(crossing)};
  }
  return {};
}

constexpr TileRegion triangle(Uplo uplo) noexcept {
  return {uplo == Uplo::lower ? Part::lower : Part::upper, 0};
}

template <class T>
constexpr bool is_complex = !std::is_floating_point_v<T>;

template <class T>
constexpr T conjugate(const T& value) noexcept {
  if constexpr (is_complex<T>)
    return std::conj(value);
  else
    return value;
}

/// x*y by its four products, without the detour that std::complex takes for infinities.
template <class T>
constexpr T multiply(const T& x, const T& y) noexcept {
  if constexpr (is_complex<T>)
    return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
  else
    return x * y;
}

}  // namespace quadriga::kernels
