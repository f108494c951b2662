// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/box_growth.h: in which order tiles of A, B and C come, so that much can be multiplied.
// Pure.
#pragma once

#include "linalg/order.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace quadriga::linalg {

/// Extents of a box along i, j and k, and when its tiles are there.
struct Box {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t inner = 0;
  double time = 0;
};

/// Of the first rows, columns and steps: how far they reach, and how much of A and B they need.
class Reach {
 public:
  explicit Reach(const ListShape& shape);
  double width(std::int64_t cols) const { return at(widths_, cols); }
  double depth(std::int64_t inner) const { return at(depths_, inner); }
  /// That the device brings itself, in tiles.
  double rows_of_a(std::int64_t rows) const { return at(rows_of_a_, rows); }
  double cols_of_b(std::int64_t cols) const { return at(cols_of_b_, cols); }
  double tiles_of_b(std::int64_t inner) const { return at(tiles_of_b_, inner); }

 private:
  static double at(const std::vector<double>& sums, std::int64_t count) {
    return sums[static_cast<std::size_t>(count)];
  }
  std::vector<double> widths_;
  std::vector<double> depths_;
  std::vector<double> rows_of_a_;
  std::vector<double> cols_of_b_;
  std::vector<double> tiles_of_b_;
};

/// How the box of what is there grows, by the slab that gives most products for the time of its
/// tiles. `eager` weighs columns of A against the rest: once they are all there, tiles of C can be
/// finished.
std::vector<Box> growth(const ListShape& shape, const Reach& reach, double eager);

}  // namespace quadriga::linalg
