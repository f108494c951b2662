// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/tile.h: what a tile is to a kernel.
//
// Kernels are instantiated for float, double, std::complex<float> and std::complex<double>. Tiles
// may have no rows or no columns; data may be null then. Nothing here allocates, and calls from
// several threads don't disturb each other. Results depend on the values and the shapes only: not
// on the leading dimension, the address or what other threads do.
#pragma once

#include <quadriga/matrix.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace quadriga::kernels {

using linalg::Coefficient;
using linalg::Op;
using linalg::Uplo;
enum class Side : std::uint8_t { left, right };
enum class Diag : std::uint8_t { non_unit, unit };

/// A column-major tile: element (i, j) at data[i + j*ld], ld >= max(1, rows).
template <class T>
struct KernelTile {
  T* data = nullptr;
  int rows = 0;
  int cols = 0;
  int ld = 1;

  T* column(int j) const noexcept { return data + static_cast<std::ptrdiff_t>(j) * ld; }
  T& operator()(int i, int j) const noexcept { return column(j)[i]; }
  bool empty() const noexcept { return rows == 0 || cols == 0; }
  operator KernelTile<const T>() const noexcept requires(!std::is_const_v<T>) {
    return {data, rows, cols, ld};
  }
};

/// A block of a tile.
template <class T>
KernelTile<T> sub_tile(const KernelTile<T>& tile, int row, int col, int rows, int cols) noexcept {
  return {tile.column(col) + row, rows, cols, tile.ld};
}

/// A tile that is only read, and a scalar: both take their type from the tile that is written.
template <class T>
using Input = std::type_identity_t<KernelTile<const T>>;
template <class T>
using Value = std::type_identity_t<T>;

}  // namespace quadriga::kernels
