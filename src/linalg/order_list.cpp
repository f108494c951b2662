// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/order_list.cpp: list schedules of products on a device that holds all operands.
#include "linalg/order.h"

#include <algorithm>

namespace quadriga::linalg {
namespace {

/// Extents of a box along i, j and k, and when its tiles are there.
struct Box {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t inner = 0;
  double time = 0;
};

/// How the box of what is there grows. `eager` weighs columns of A against the rest: once they are
/// all there, tiles of C can be finished.
std::vector<Box> growth(const ListShape& shape, double eager) {
  const std::int64_t rows = shape.rows.size();
  const std::int64_t cols = shape.cols.size();
  const auto real = [](std::int64_t count) { return static_cast<double>(count); };
  std::vector<Box> boxes{{1, 1, 1, shape.load_a + shape.load_b + shape.load_c}};
  while (true) {
    const auto [i, j, k, time] = boxes.back();
    const double tiles_of_b = real((k + shape.steps - 1) / shape.steps);
    const double by_row = real(k) * shape.load_a + real(j) * shape.load_c;
    const double by_col = tiles_of_b * shape.load_b + real(i) * shape.load_c;
    const double by_step =
        real(i) * shape.load_a + (k % shape.steps == 0 ? real(j) * shape.load_b : 0);
    const double row_gain = i < rows ? real(j * k) / by_row : -1;
    const double col_gain = j < cols ? real(i * k) / by_col : -1;
    const double step_gain = k < shape.inner ? eager * real(i * j) / by_step : -1;
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

/// The limit as soon as it can't end before.
double schedule(const ListShape& shape, const std::vector<Box>& boxes, double limit,
                std::vector<Product>& out) {
  const std::int64_t rows = shape.rows.size();
  Columns columns(rows, shape.cols.size(), shape.inner);
  const auto total = static_cast<std::size_t>(rows * shape.cols.size() * shape.inner);
  double time = 0;
  double home = 0;
  std::size_t there = 0;
  out.clear();
  out.reserve(total);
  while (out.size() < total) {
    while (there + 1 < boxes.size() && boxes[there + 1].time <= time) ++there;
    time = std::max(time, boxes[there].time);
    const auto left = static_cast<double>(total - out.size());
    if (time + left * shape.product + shape.store_c >= limit) return limit;
    const std::int64_t at = columns.next(boxes[there]);
    if (at < 0) {
      time = boxes[++there].time;
      continue;
    }
    out.push_back({static_cast<std::int32_t>(shape.rows.begin + at % rows),
                   static_cast<std::int32_t>(shape.cols.begin + at / rows),
                   static_cast<std::int32_t>(columns.done(at))});
    time += shape.product;
    if (columns.advance(at)) home = std::max(home, time) + shape.store_c;
  }
  return home;
}

}  // namespace

double list_products(const ListShape& shape, std::vector<Product>& out, double limit) {
  out.clear();
  if (shape.rows.size() <= 0 || shape.cols.size() <= 0 || shape.inner <= 0) return 0;
  double best = limit;
  std::vector<Product> order;
  for (const double eager : {1.0, 1.5, 2.0, 4.0}) {
    const double time = schedule(shape, growth(shape, eager), best, order);
    if (time >= best) continue;
    best = time;
    std::swap(out, order);
  }
  return best;
}

}  // namespace quadriga::linalg
