// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/order_product.cpp: orders of products: resident panels, growing boxes, streams of
// columns.
#include "linalg/box_growth.h"
#include "linalg/order.h"
#include "linalg/special_cases.h"

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

namespace {

/// How the panels of a height follow each other. At the start columns enough advance that a step
/// along k takes longer than bringing its tiles, by some slack.
PanelShape panels_of(const ProductShape& shape, std::int64_t height) noexcept {
  constexpr double slack = 1.2;
  const std::int64_t cols = shape.cols.size();
  const std::int64_t room = shape.memory - spare - height * shape.inner;
  const std::int64_t most = std::min(cols, std::max<std::int64_t>(1, room / (height + 2)));
  const auto rows = static_cast<double>(height);
  const double wanted = slack * shape.load_ratio;
  const double enough = rows > wanted ? rows * wanted / (rows - wanted) : static_cast<double>(cols);
  return {
      .rows = shape.rows,
      .cols = shape.cols,
      .inner = shape.inner,
      .at_start = std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(enough)), 1, most),
      .height = height,
      .grows = uses(SpecialCase::growing)};
}

bool is_empty(const Range& rows, const Range& cols, std::int64_t inner) noexcept {
  return rows.size() <= 0 || cols.size() <= 0 || inner <= 0;
}

}  // namespace

ProductOrder::ProductOrder(const ProductShape& shape) {
  if (is_empty(shape.rows, shape.cols, shape.inner)) return;
  if (shape.memory == 0) {
    for (std::int64_t j = shape.cols.begin; j < shape.cols.end; ++j)
      stages_.push_back({shape.rows, {j, j + 1}, {0, shape.inner}, Way::by_tile});
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
    add_panels(panels_of(shape, by_rows));
  } else if (cols_traffic > block.traffic) {
    add_blocks(shape, block.height, block.width);
  } else {
    turned_ = true;
    add_panels(panels_of(other, by_cols));
  }
}

ProductOrder::ProductOrder(const PanelShape& shape) {
  if (!is_empty(shape.rows, shape.cols, shape.inner)) add_panels(shape);
}

void ProductOrder::add_panels(const PanelShape& shape) {
  const std::int64_t panels = up(shape.rows.size(), shape.height);
  for (std::int64_t panel = 0; panel < panels; ++panel) add_panel(shape, panel, panels);
  if (shape.grows) stages_.front().way = Way::growing;
}

void ProductOrder::add_panel(const PanelShape& shape, std::int64_t panel, std::int64_t panels) {
  const Range part = share(shape.rows.size(), panels, panel);
  const Range rows{shape.rows.begin + part.begin, shape.rows.begin + part.end};
  const std::int64_t cols = shape.cols.size();
  const bool is_last = panel + 1 == panels;
  const bool backwards = panel % 2 == 1;
  const auto push = [&](std::int64_t begin, std::int64_t end, Way way) {
    if (begin < end)
      stages_.push_back({rows, cut(shape.cols, begin, end, backwards), {0, shape.inner}, way});
  };
  const std::int64_t first = std::min<std::int64_t>(panel == 0 ? shape.at_start : 1, cols);
  const std::int64_t rest = std::max(first, cols - 1);
  push(0, first, Way::by_step);
  for (std::int64_t c = first; c < rest; ++c) push(c, c + 1, Way::by_step);
  push(rest, cols, is_last ? Way::by_tile : Way::by_step);
}

void ProductOrder::add_blocks(const ProductShape& shape, std::int64_t height, std::int64_t width) {
  const std::int64_t down = up(shape.rows.size(), height);
  const std::int64_t right = up(shape.cols.size(), width);
  const std::int64_t steps = std::min(slab(shape), shape.inner);
  const std::int64_t room = shape.memory - spare - height * width;
  const std::int64_t grown = std::clamp<std::int64_t>(room / (height + width), steps, shape.inner);
  for (std::int64_t p = 0; p < down; ++p) {
    for (std::int64_t q = 0; q < right; ++q) {
      const std::int64_t turn = p % 2 == 0 ? q : right - 1 - q;
      const Range i = share(shape.rows.size(), down, p);
      const Range j = share(shape.cols.size(), right, turn);
      const Range rows{shape.rows.begin + i.begin, shape.rows.begin + i.end};
      const Range cols{shape.cols.begin + j.begin, shape.cols.begin + j.end};
      const std::int64_t head = p + q == 0 ? grown : steps;
      const std::int64_t tail = std::max(head, shape.inner - steps);
      const bool grows = p + q == 0 && uses(SpecialCase::growing);
      stages_.push_back({rows, cols, {0, head}, grows ? Way::growing : Way::by_tile});
      stages_.push_back({rows, cols, {head, tail}, Way::by_step});
      stages_.push_back({rows, cols, {tail, shape.inner}, Way::by_tile});
    }
  }
}

bool ProductOrder::next(Product& out) {
  while (given_ == stage_.size())
    if (!next_stage()) return false;
  out = stage_[given_++];
  return true;
}

bool ProductOrder::next_stage() {
  if (begun_ == stages_.size()) return false;
  stage_.clear();
  given_ = 0;
  fill(stages_[begun_++]);
  if (turned_)
    for (Product& product : stage_) std::swap(product.i, product.j);
  return true;
}

void ProductOrder::fill(const Stage& stage) {
  const auto& [rows, cols, inner, way] = stage;
  const auto push = [&](std::int64_t i, std::int64_t j, std::int64_t k) {
    stage_.push_back({narrow(i), narrow(j), narrow(k)});
  };
  if (way == Way::growing) {
    grow(stage);
  } else if (way == Way::by_step) {
    for (std::int64_t k = inner.begin; k < inner.end; ++k)
      for (std::int64_t j = cols.begin; j < cols.end; ++j)
        for (std::int64_t i = rows.begin; i < rows.end; ++i) push(i, j, k);
  } else {
    for (std::int64_t j = cols.begin; j < cols.end; ++j)
      for (std::int64_t i = rows.begin; i < rows.end; ++i)
        for (std::int64_t k = inner.begin; k < inner.end; ++k) push(i, j, k);
  }
}

/// As the box of a list schedule, where all tiles take equally long to come.
void ProductOrder::grow(const Stage& stage) {
  const ListShape alike{.rows = stage.rows,
                        .cols = stage.cols,
                        .inner = stage.inner.size(),
                        .load_a = 1,
                        .load_b = 1,
                        .load_c = 1};
  const auto added = [](std::int64_t before, std::int64_t now) {
    return Range{before < now ? before : 0, now};
  };
  Box before;
  for (const Box& box : growth(alike, Reach(alike), 1)) {
    const Range down = added(before.rows, box.rows);
    const Range right = added(before.cols, box.cols);
    const Range along = added(before.inner, box.inner);
    fill({{stage.rows.begin + down.begin, stage.rows.begin + down.end},
          {stage.cols.begin + right.begin, stage.cols.begin + right.end},
          {stage.inner.begin + along.begin, stage.inner.begin + along.end},
          Way::by_step});
    before = box;
  }
}

}  // namespace quadriga::linalg
