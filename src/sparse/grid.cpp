// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/grid.cpp: the negative Laplacian of a box of points, by 7 or 27 neighbours.
#include <fmt/format.h>
#include <quadriga/sparse.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/number_type.h"

namespace quadriga::sparse {
namespace {

void check(const BoxGrid& grid) {
  require(grid.points == 7 || grid.points == 27,
          fmt::format("a stencil of {} points; expected 7 or 27", grid.points));
  require(
      grid.x >= 1 && grid.y >= 1 && grid.z >= 1,
      fmt::format("a grid of {} x {} x {}; expected sizes of 1 or more", grid.x, grid.y, grid.z));
}

/// A stencil's pairs of neighbours along one line: 3n - 2 for n points, with the points themselves.
constexpr std::int64_t pairs(std::int64_t points) noexcept { return 3 * points - 2; }

/// One point's neighbours, in the order of their numbers.
class Stencil {
 public:
  explicit Stencil(const BoxGrid& grid) : grid_(grid) {
    const auto along = [](std::int64_t points) { return points > 1 ? 1 : 0; };
    const int flat = along(grid.x) + along(grid.y) + along(grid.z);
    constexpr std::array<int, 4> full{1, 3, 9, 27};
    diagonal_ = grid.points == 27 ? full[static_cast<std::size_t>(flat)] - 1 : 2 * flat;
    // A single point has no neighbours; its equation is that of the missing ones.
    if (flat == 0) diagonal_ = grid.points - 1;
  }
  int diagonal() const noexcept { return diagonal_; }

  /// Calls `visit(column, whether it is the point itself)`.
  template <class Visit>
  void visit(std::int64_t row, Visit visit) const {
    const std::int64_t x = row % grid_.x;
    const std::int64_t y = row / grid_.x % grid_.y;
    const std::int64_t z = row / grid_.x / grid_.y;
    for (int dz = z > 0 ? -1 : 0; dz <= (z + 1 < grid_.z ? 1 : 0); ++dz)
      for (int dy = y > 0 ? -1 : 0; dy <= (y + 1 < grid_.y ? 1 : 0); ++dy)
        for (int dx = x > 0 ? -1 : 0; dx <= (x + 1 < grid_.x ? 1 : 0); ++dx)
          if (grid_.points == 27 || std::abs(dx) + std::abs(dy) + std::abs(dz) <= 1)
            visit(row + (dz * grid_.y + dy) * grid_.x + dx, dx == 0 && dy == 0 && dz == 0);
  }

 private:
  const BoxGrid& grid_;
  int diagonal_;
};

template <class T>
void write_rows(const BoxGrid& grid, std::int64_t first, std::int64_t last, std::int64_t* offsets,
                std::int64_t* columns, T* values) {
  const Stencil stencil(grid);
  std::int64_t at = 0;
  for (std::int64_t row = first; row < last; ++row) {
    offsets[row - first] = at;
    stencil.visit(row, [&](std::int64_t column, bool is_itself) {
      columns[at] = column;
      values[at++] = T(static_cast<float>(is_itself ? stencil.diagonal() : -1));
    });
  }
  offsets[last - first] = at;
}

}  // namespace

std::int64_t rows_of(const BoxGrid& grid) noexcept { return grid.x * grid.y * grid.z; }

std::int64_t elements_of(const BoxGrid& grid) noexcept {
  if (grid.points == 27) return pairs(grid.x) * pairs(grid.y) * pairs(grid.z);
  return pairs(grid.x) * grid.y * grid.z + (pairs(grid.y) - grid.y) * grid.x * grid.z +
         (pairs(grid.z) - grid.z) * grid.x * grid.y;
}

void laplacian(const BoxGrid& grid, std::int64_t first, std::int64_t last, std::int64_t* offsets,
               std::int64_t* columns, void* values, DType dtype) {
  check(grid);
  require(first >= 0 && first <= last && last <= rows_of(grid),
          fmt::format("rows {} to {} of a grid of {} points", first, last, rows_of(grid)));
  with_number_type(dtype, [&]<class T>() {
    write_rows(grid, first, last, offsets, columns, static_cast<T*>(values));
  });
}

}  // namespace quadriga::sparse
