// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/order_list.cpp: list schedules of products on a device that holds all operands.
#include "linalg/box_growth.h"
#include "linalg/order.h"
#include "linalg/special_cases.h"

#include <algorithm>
#include <numeric>

namespace quadriga::linalg {
namespace {

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

double count_products(const ListShape& shape) {
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
  double left = count_products(shape);
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
    if (time < best) {
      best = time;
      std::swap(out, order);
    }
    if (!uses(SpecialCase::eager)) break;
  }
  return best;
}

}  // namespace quadriga::linalg
