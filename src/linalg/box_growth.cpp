// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/box_growth.cpp: a box of products grows by its best slab.
#include "linalg/box_growth.h"

#include <algorithm>
#include <cmath>

namespace quadriga::linalg {
namespace {

/// Of lengths, all 1 if there are none; the first of each `turn` counts for all of them.
std::vector<double> sums_of(const std::vector<double>& lengths, std::int64_t count,
                            std::int64_t turn) {
  std::vector<double> sums{0};
  for (std::int64_t i = 0; i < count; ++i) {
    const double length = lengths.empty() ? 1 : lengths[static_cast<std::size_t>(i)];
    const std::int64_t times = i % turn == 0 ? turn : 0;
    sums.push_back(sums.back() + length * static_cast<double>(times));
  }
  return sums;
}

}  // namespace

Reach::Reach(const ListShape& shape)
    : widths_(sums_of(shape.widths, shape.cols.size(), 1)),
      depths_(sums_of(shape.depths, shape.inner, 1)),
      rows_of_a_(sums_of({}, shape.rows.size(), shape.sharers_a)),
      cols_of_b_(sums_of(shape.widths, shape.cols.size(), shape.sharers_b)),
      tiles_of_b_(depths_.size(), 0) {
  constexpr double rounding = 1e-6;
  for (std::size_t k = 1; k < depths_.size(); ++k)
    tiles_of_b_[k] = std::ceil(depths_[k] / static_cast<double>(shape.steps) - rounding);
}

std::vector<Box> growth(const ListShape& shape, const Reach& reach, double eager) {
  const std::int64_t rows = shape.rows.size();
  const std::int64_t cols = shape.cols.size();
  // Where one tile is all that several devices share, the others wait until it has come to
  // the first.
  const auto real = [](std::int64_t count) { return static_cast<double>(count); };
  const double first = reach.depth(1) * real(shape.sharers_a) * shape.load_a +
                       reach.width(1) * (real(shape.sharers_b) * shape.load_b + shape.load_c);
  std::vector<Box> boxes{{1, 1, 1, first}};
  while (true) {
    const auto [i, j, k, time] = boxes.back();
    const double down = static_cast<double>(i);
    const double width = reach.width(j);
    const double depth = reach.depth(k);
    double by_row = 0, by_col = 0, by_step = 0;
    double row_gain = -1, col_gain = -1, step_gain = -1;
    if (i < rows) {
      const double of_a = reach.rows_of_a(i + 1) - reach.rows_of_a(i);
      by_row = of_a * depth * shape.load_a + width * shape.load_c;
      row_gain = width * depth / by_row;
    }
    if (j < cols) {
      const double more = reach.width(j + 1) - width;
      const double of_b = reach.cols_of_b(j + 1) - reach.cols_of_b(j);
      by_col = of_b * reach.tiles_of_b(k) * shape.load_b + down * more * shape.load_c;
      col_gain = down * more * depth / by_col;
    }
    if (k < shape.inner) {
      const double more = reach.depth(k + 1) - depth;
      const double of_b = reach.tiles_of_b(k + 1) - reach.tiles_of_b(k);
      by_step = reach.rows_of_a(i) * more * shape.load_a + reach.cols_of_b(j) * of_b * shape.load_b;
      step_gain = eager * down * width * more / by_step;
    }
    if (std::max({row_gain, col_gain, step_gain}) < 0) return boxes;
    if (step_gain >= std::max(row_gain, col_gain))
      boxes.push_back({i, j, k + 1, time + by_step});
    else if (row_gain >= col_gain)
      boxes.push_back({i + 1, j, k, time + by_row});
    else
      boxes.push_back({i, j + 1, k, time + by_col});
  }
}

}  // namespace quadriga::linalg
