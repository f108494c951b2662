// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/order_list.cpp: list schedules of products on a device that holds all operands.
#include "linalg/order.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace quadriga::linalg {
namespace {

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
  explicit Reach(const ListShape& shape)
      : widths_(sums(shape.widths, shape.cols.size(), 1)),
        depths_(sums(shape.depths, shape.inner, 1)),
        rows_of_a_(sums({}, shape.rows.size(), shape.sharers_a)),
        cols_of_b_(sums(shape.widths, shape.cols.size(), shape.sharers_b)),
        tiles_of_b_(depths_.size(), 0) {
    constexpr double rounding = 1e-6;
    for (std::size_t k = 1; k < depths_.size(); ++k)
      tiles_of_b_[k] = std::ceil(depths_[k] / static_cast<double>(shape.steps) - rounding);
  }
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
  /// Of lengths, all 1 if there are none; the first of each `turn` counts for all of them.
  static std::vector<double> sums(const std::vector<double>& lengths, std::int64_t count,
                                  std::int64_t turn) {
    std::vector<double> sums{0};
    for (std::int64_t i = 0; i < count; ++i) {
      const double length = lengths.empty() ? 1 : lengths[static_cast<std::size_t>(i)];
      const std::int64_t times = i % turn == 0 ? turn : 0;
      sums.push_back(sums.back() + length * static_cast<double>(times));
    }
    return sums;
  }

  std::vector<double> widths_;
  std::vector<double> depths_;
  std::vector<double> rows_of_a_;
  std::vector<double> cols_of_b_;
  std::vector<double> tiles_of_b_;
};

/// How the box of what is there grows. `eager` weighs columns of A against the rest: once they are
/// all there, tiles of C can be finished.
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

/// What is done of each tile of C, and which comes next.
class Columns {
 public:
  Columns(std::int64_t rows, std::int64_t cols, std::int64_t inner)
      : rows_(rows), inner_(inner), done_(static_cast<std::size_t>(rows * cols), 0) {}

  /// The first tile, column by column, with something to do in the box; -1: none.
  std::int64_t next(const Box& box) {
    const std::int64_t end = box.cols * rows_;
    for (std::int64_t at = finished_; at < end; ++at)
      if (at % rows_ < box.rows && done(at) < box.inner) return at;
    return -1;
  }
  /// The step that a tile takes; true if it was the last.
  bool advance(std::int64_t at) {
    const bool last = ++done(at) == inner_;
    while (finished_ < static_cast<std::int64_t>(done_.size()) && done(finished_) == inner_)
      ++finished_;
    return last;
  }
  std::int64_t& done(std::int64_t at) { return done_[static_cast<std::size_t>(at)]; }

 private:
  std::int64_t rows_;
  std::int64_t inner_;
  std::int64_t finished_ = 0;  // All before are.
  std::vector<std::int64_t> done_;
};

/// Seconds of the next product of the tile of C at a column.
double product_seconds(const ListShape& shape, std::int64_t col, std::int64_t k) {
  if (shape.products.empty()) return shape.product;
  return shape.products[static_cast<std::size_t>(col + k * shape.cols.size())];
}

double all_products(const ListShape& shape) {
  const double rows = static_cast<double>(shape.rows.size());
  if (!shape.products.empty())
    return rows * std::accumulate(shape.products.begin(), shape.products.end(), 0.0);
  return rows * static_cast<double>(shape.cols.size() * shape.inner) * shape.product;
}

double narrowest(const ListShape& shape) {
  return shape.widths.empty() ? 1 : *std::ranges::min_element(shape.widths);
}

/// The limit as soon as it can't end before.
double schedule(const ListShape& shape, const Reach& reach, const std::vector<Box>& boxes,
                double limit, std::vector<Product>& out) {
  const std::int64_t rows = shape.rows.size();
  Columns columns(rows, shape.cols.size(), shape.inner);
  const auto total = static_cast<std::size_t>(rows * shape.cols.size() * shape.inner);
  double time = 0;
  double home = 0;
  double left = all_products(shape);
  std::size_t there = 0;
  const double last_home = narrowest(shape) * shape.store_c;
  out.clear();
  out.reserve(total);
  while (out.size() < total) {
    while (there + 1 < boxes.size() && boxes[there + 1].time <= time) ++there;
    time = std::max(time, boxes[there].time);
    if (time + left + last_home >= limit) return limit;
    const std::int64_t at = columns.next(boxes[there]);
    if (at < 0) {
      time = boxes[++there].time;
      continue;
    }
    const std::int64_t col = at / rows;
    const std::int64_t k = columns.done(at);
    out.push_back({static_cast<std::int32_t>(shape.rows.begin + at % rows),
                   static_cast<std::int32_t>(shape.cols.begin + col),
                   static_cast<std::int32_t>(k)});
    const double seconds = product_seconds(shape, col, k);
    time += seconds;
    left -= seconds;
    if (columns.advance(at))
      home = std::max(home, time) + (reach.width(col + 1) - reach.width(col)) * shape.store_c;
  }
  return home;
}

}  // namespace

double list_products(const ListShape& shape, std::vector<Product>& out, double limit) {
  out.clear();
  if (shape.rows.size() <= 0 || shape.cols.size() <= 0 || shape.inner <= 0) return 0;
  const Reach reach(shape);
  double best = limit;
  std::vector<Product> order;
  for (const double eager : {1.0, 1.5, 2.0, 4.0}) {
    const double time = schedule(shape, reach, growth(shape, reach, eager), best, order);
    if (time >= best) continue;
    best = time;
    std::swap(out, order);
  }
  return best;
}

}  // namespace quadriga::linalg
