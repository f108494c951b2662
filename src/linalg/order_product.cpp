// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/order_product.cpp: orders of products: resident panels, growing boxes, streams of
// columns.
#include "linalg/order.h"

#include <algorithm>
#include <cmath>

namespace quadriga::linalg {
namespace {

std::int32_t narrow(std::int64_t index) noexcept { return static_cast<std::int32_t>(index); }

}  // namespace

Range share(std::int64_t count, std::int64_t parts, std::int64_t index) noexcept {
  return {count * index / parts, count * (index + 1) / parts};
}

Grid product_grid(std::int64_t devices, std::int64_t rows, std::int64_t cols) noexcept {
  Grid best{1, devices};
  double least = -1;
  for (std::int64_t down = 1; down <= devices; ++down) {
    if (devices % down != 0) continue;
    const std::int64_t right = devices / down;
    // Each device loads its rows of A and its columns of B, the largest share decides the time.
    const double load = std::ceil(static_cast<double>(rows) / static_cast<double>(down)) +
                        std::ceil(static_cast<double>(cols) / static_cast<double>(right));
    if (least >= 0 && load >= least) continue;
    least = load;
    best = {down, right};
  }
  return best;
}

namespace {

std::int64_t up(std::int64_t count, std::int64_t parts) noexcept {
  return (count + parts - 1) / parts;
}

/// Tiles kept free for what is on its way.
constexpr std::int64_t spare = 4;

/// The highest panel of A's rows that stays while two columns of C are there; 0 if none does.
std::int64_t panel_height(const ProductShape& shape) noexcept {
  const std::int64_t most = (shape.memory - spare) / (shape.inner + 2);
  if (most < 1) return 0;
  // Nearly equal panels, as few as memory allows.
  return up(shape.rows.size(), up(shape.rows.size(), std::min(most, shape.rows.size())));
}

std::int64_t panel_traffic(const ProductShape& shape, std::int64_t height) noexcept {
  return shape.inner * (shape.rows.size() + shape.cols.size() * up(shape.rows.size(), height));
}

/// Steps along k that a tile of C takes at once when blocks change, so that blocks
/// change gradually.
std::int64_t slab(const ProductShape& shape) noexcept {
  const auto steps = static_cast<std::int64_t>(std::ceil(2 * shape.load_ratio));
  return std::clamp<std::int64_t>(steps, 1, shape.inner);
}

struct Block {
  std::int64_t height = 1;
  std::int64_t width = 1;
  std::int64_t traffic = 0;
};

/// The block of C that makes the traffic of A and B least.
Block best_block(const ProductShape& shape) noexcept {
  const std::int64_t rows = shape.rows.size();
  const std::int64_t cols = shape.cols.size();
  const auto traffic = [&](std::int64_t height, std::int64_t width) {
    return shape.inner * (rows * up(cols, width) + cols * up(rows, height));
  };
  Block best{1, 1, traffic(1, 1)};
  for (const std::int64_t steps : {slab(shape), std::int64_t{1}}) {
    for (std::int64_t height = 1; height <= rows; ++height) {
      // The rows' tiles of A for a slab stay while B's pass, and some of the next slab come.
      const std::int64_t room = shape.memory - 2 * spare - steps * (height + 2);
      const std::int64_t most = std::min(cols, room / height);
      if (most < 1) continue;
      const std::int64_t even_height = up(rows, up(rows, height));
      const std::int64_t even_width = up(cols, up(cols, most));
      const std::int64_t moved = traffic(even_height, even_width);
      if (moved < best.traffic) best = {even_height, even_width, moved};
    }
    if (best.height > 1 || best.width > 1) break;
  }
  return best;
}

ProductShape exchanged(ProductShape shape) noexcept {
  std::swap(shape.rows, shape.cols);
  return shape;
}

/// Part of a range, from its end if `backwards`.
Range cut(Range range, std::int64_t begin, std::int64_t end, bool backwards) noexcept {
  if (backwards) return {range.end - end, range.end - begin};
  return {range.begin + begin, range.begin + end};
}

}  // namespace

std::int64_t product_traffic(const ProductShape& shape) noexcept {
  const ProductShape other = exchanged(shape);
  std::int64_t least = best_block(shape).traffic;
  if (const std::int64_t height = panel_height(shape); height > 0)
    least = std::min(least, panel_traffic(shape, height));
  if (const std::int64_t width = panel_height(other); width > 0)
    least = std::min(least, panel_traffic(other, width));
  return least;
}

ProductOrder::ProductOrder(const ProductShape& shape) : shape_(shape) {
  if (shape.rows.size() <= 0 || shape.cols.size() <= 0 || shape.inner <= 0) return;
  const Range all{0, shape.inner};
  if (shape.memory == 0) {
    for (std::int64_t j = shape.cols.begin; j < shape.cols.end; ++j)
      stages_.push_back({shape.rows, {j, j + 1}, all, Way::by_tile});
    return;
  }
  const ProductShape other = exchanged(shape);
  const std::int64_t by_rows = panel_height(shape);
  const std::int64_t by_cols = panel_height(other);
  const Block block = best_block(shape);
  const std::int64_t none = INT64_MAX;
  const std::int64_t rows_traffic = by_rows > 0 ? panel_traffic(shape, by_rows) : none;
  const std::int64_t cols_traffic = by_cols > 0 ? panel_traffic(other, by_cols) : none;
  if (rows_traffic <= std::min(cols_traffic, block.traffic)) {
    plan_panels(by_rows);
  } else if (cols_traffic > block.traffic) {
    plan_blocks(block.height, block.width);
  } else {
    shape_ = other;
    turned_ = true;
    plan_panels(by_cols);
  }
}

void ProductOrder::plan_panels(std::int64_t height) {
  const std::int64_t cols = shape_.cols.size();
  const std::int64_t panels = up(shape_.rows.size(), height);
  const std::int64_t room = shape_.memory - spare - height * shape_.inner;
  // At the start: columns enough that a step along k takes longer than bringing its tiles.
  const double rows = static_cast<double>(height);
  const double wanted = 1.2 * shape_.load_ratio;
  const double enough = rows > wanted ? rows * wanted / (rows - wanted) : static_cast<double>(cols);
  const auto start =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(enough)), 1,
                               std::min(cols, std::max<std::int64_t>(1, room / (height + 2))));
  // Between panels: as many as it takes to bring a panel, if their part of B can stay.
  const auto change = std::clamp<std::int64_t>(
      static_cast<std::int64_t>(std::ceil(shape_.load_ratio)), 1,
      std::min(cols, std::max<std::int64_t>(1, room / (shape_.inner + height))));
  for (std::int64_t p = 0; p < panels; ++p) {
    const Range part = share(shape_.rows.size(), panels, p);
    const Range panel{shape_.rows.begin + part.begin, shape_.rows.begin + part.end};
    const bool last = p + 1 == panels;
    plan_panel(panel, p == 0 ? start : change, last ? 1 : change, p % 2 == 1, last);
    if (p == 0) stages_.front().way = Way::growing;
  }
}

void ProductOrder::plan_panel(Range rows, std::int64_t at_start, std::int64_t at_end,
                              bool backwards, bool last) {
  const Range all{0, shape_.inner};
  const std::int64_t cols = shape_.cols.size();
  const auto push = [&](std::int64_t begin, std::int64_t end, Way way) {
    if (begin < end) stages_.push_back({rows, cut(shape_.cols, begin, end, backwards), all, way});
  };
  const std::int64_t first = std::min(at_start, cols);
  const std::int64_t rest = std::max(first, cols - at_end);
  push(0, first, Way::by_step);
  for (std::int64_t c = first; c < rest; ++c) push(c, c + 1, Way::by_step);
  push(rest, cols, last ? Way::by_tile : Way::by_step);
}

void ProductOrder::plan_blocks(std::int64_t height, std::int64_t width) {
  const std::int64_t down = up(shape_.rows.size(), height);
  const std::int64_t right = up(shape_.cols.size(), width);
  const std::int64_t steps = std::min(slab(shape_), shape_.inner);
  const std::int64_t room = shape_.memory - spare - height * width;
  const std::int64_t grown = std::clamp<std::int64_t>(room / (height + width), steps, shape_.inner);
  for (std::int64_t p = 0; p < down; ++p) {
    for (std::int64_t q = 0; q < right; ++q) {
      const std::int64_t turn = p % 2 == 0 ? q : right - 1 - q;
      const Range i = share(shape_.rows.size(), down, p);
      const Range j = share(shape_.cols.size(), right, turn);
      const Range rows{shape_.rows.begin + i.begin, shape_.rows.begin + i.end};
      const Range cols{shape_.cols.begin + j.begin, shape_.cols.begin + j.end};
      const std::int64_t head = p + q == 0 ? grown : steps;
      const std::int64_t tail = std::max(head, shape_.inner - steps);
      stages_.push_back({rows, cols, {0, head}, p + q == 0 ? Way::growing : Way::by_tile});
      stages_.push_back({rows, cols, {head, tail}, Way::by_step});
      stages_.push_back({rows, cols, {tail, shape_.inner}, Way::by_tile});
    }
  }
}

bool ProductOrder::next(std::vector<Product>& out) {
  out.clear();
  while (done_ < stages_.size() && stages_[done_].inner.size() <= 0) ++done_;
  if (done_ == stages_.size()) return false;
  const Stage& stage = stages_[done_++];
  const auto [rows, cols, inner, way] = stage;
  const auto push = [&](std::int64_t i, std::int64_t j, std::int64_t k) {
    out.push_back({narrow(i), narrow(j), narrow(k)});
  };
  if (way == Way::growing) {
    grow(stage, out);
  } else if (way == Way::by_step) {
    for (std::int64_t k = inner.begin; k < inner.end; ++k)
      for (std::int64_t j = cols.begin; j < cols.end; ++j)
        for (std::int64_t i = rows.begin; i < rows.end; ++i) push(i, j, k);
  } else {
    for (std::int64_t j = cols.begin; j < cols.end; ++j)
      for (std::int64_t i = rows.begin; i < rows.end; ++i)
        for (std::int64_t k = inner.begin; k < inner.end; ++k) push(i, j, k);
  }
  if (turned_)
    for (Product& product : out) std::swap(product.i, product.j);
  return true;
}

void ProductOrder::grow(const Stage& stage, std::vector<Product>& out) const {
  std::int64_t size[3] = {0, 0, 0};  // along i, j, k
  const std::int64_t most[3] = {stage.rows.size(), stage.cols.size(), stage.inner.size()};
  const auto fill = [&](Range i, Range j, Range k) {
    for (std::int64_t l = k.begin; l < k.end; ++l)
      for (std::int64_t c = j.begin; c < j.end; ++c)
        for (std::int64_t r = i.begin; r < i.end; ++r)
          out.push_back({narrow(stage.rows.begin + r), narrow(stage.cols.begin + c),
                         narrow(stage.inner.begin + l)});
  };
  size[0] = size[1] = size[2] = 1;
  fill({0, 1}, {0, 1}, {0, 1});
  while (true) {
    int best = -1;
    double best_gain = 0;
    for (int d = 0; d < 3; ++d) {
      if (size[d] == most[d]) continue;
      const auto x = static_cast<double>(size[(d + 1) % 3]);
      const auto y = static_cast<double>(size[(d + 2) % 3]);
      const double gain = x * y / (x + y);
      if (best >= 0 && gain <= best_gain) continue;
      best = d;
      best_gain = gain;
    }
    if (best < 0) return;
    Range box[3] = {{0, size[0]}, {0, size[1]}, {0, size[2]}};
    box[best] = {size[best], size[best] + 1};
    ++size[best];
    fill(box[0], box[1], box[2]);
  }
}

}  // namespace quadriga::linalg
