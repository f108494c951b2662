// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/order_cholesky.cpp: blocks of columns, owners and priorities of Cholesky.
#include "linalg/order.h"
#include "linalg/special_cases.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace quadriga::linalg {
namespace {

using Kind = Step::Kind;

/// Upward ranks: the longest path from a task to the end, by their times.
///
/// With several blocks, all of a block goes before the next one, and what columns on its left do to
/// it keeps the order of submission: those columns stream past once.
class Ranks {
 public:
  Ranks(const CholeskyShape& shape, std::int64_t blocks)
      : shape_(shape), tiles_(shape.tiles), blocks_(blocks) {
    if (tiles_ == 0 || (shape.devices == 1 && shape.memory > 0))
      return;  // one stream: the order is enough
    potrf_.assign(size(tiles_), 0);
    trsm_.assign(size(tiles_ * tiles_), 0);
    for (std::int64_t k = tiles_ - 1; k >= 0; --k) rank_column(k);
    band_ = std::min(most_rank, INT32_MAX / (blocks_ + 1));
    scale_ = potrf_[0] > 0 ? static_cast<double>(band_ - 2) / potrf_[0] : 0;
  }

  std::int32_t priority(const Step& step, std::int64_t block, bool from_left) const {
    if (potrf_.empty()) return 0;
    const auto inside = from_left ? band_ - 1 : 1 + static_cast<std::int64_t>(rank(step) * scale_);
    return static_cast<std::int32_t>((blocks_ - 1 - block) * band_ + inside);
  }

 private:
  static std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }
  double& trsm(std::int64_t i, std::int64_t k) { return trsm_[size(i + k * tiles_)]; }
  double trsm(std::int64_t i, std::int64_t k) const { return trsm_[size(i + k * tiles_)]; }
  double syrk(std::int64_t i, std::int64_t k) const {
    return static_cast<double>(i - k) * shape_.syrk_seconds + potrf_[size(i)];
  }
  double gemm(std::int64_t i, std::int64_t j, std::int64_t k) const {
    return static_cast<double>(j - k) * shape_.gemm_seconds + trsm(i, j);
  }

  void rank_column(std::int64_t k) {
    double longest = 0;
    for (std::int64_t i = tiles_ - 1; i > k; --i) {
      double after = syrk(i, k);
      for (std::int64_t j = k + 1; j < i; ++j) after = std::max(after, gemm(i, j, k));
      for (std::int64_t r = i + 1; r < tiles_; ++r) after = std::max(after, gemm(r, i, k));
      trsm(i, k) = shape_.trsm_seconds + after;
      longest = std::max(longest, trsm(i, k));
    }
    potrf_[size(k)] = shape_.potrf_seconds + longest;
  }

  double rank(const Step& step) const {
    switch (step.kind) {
      case Kind::potrf:
        return potrf_[size(step.k)];
      case Kind::trsm:
        return trsm(step.i, step.k);
      case Kind::syrk:
        return syrk(step.i, step.k);
      case Kind::gemm:
        return gemm(step.i, step.j, step.k);
    }
    return 0;
  }

  static constexpr std::int64_t most_rank = std::int64_t{1} << 20;

  const CholeskyShape& shape_;
  std::int64_t tiles_;
  std::int64_t blocks_;
  std::int64_t band_ = 1;  ///< Priorities of a block.
  std::vector<double> potrf_;
  std::vector<double> trsm_;
  double scale_ = 0;
};

/// Tiles on or below the diagonal in `width` columns whose first has `rows` of them.
std::int64_t block_tiles(std::int64_t rows, std::int64_t width) noexcept {
  return rows * width - width * (width - 1) / 2;
}

class Emitter {
 public:
  Emitter(const CholeskyShape& shape, std::int64_t blocks,
          const std::function<void(const Step&)>& emit)
      : shape_(shape), ranks_(shape, blocks), emit_(emit) {}

  /// Columns begin to end, which the columns before are applied to first.
  void block(std::int64_t index, Range columns) {
    index_ = index;
    from_left_ = true;
    for (std::int64_t k = 0; k < columns.begin; ++k)
      for (std::int64_t i = columns.begin; i < shape_.tiles; ++i)
        for (std::int64_t j = columns.begin; j < columns.end && j <= i; ++j) update(i, j, k);
    from_left_ = false;
    right_looking(columns);
  }

  /// All rows, one after the other, where everything fits a single device: a row brings as many
  /// products for each of its tiles as there are rows before it, half of that on average, so that
  /// the device computes while the triangle still arrives; column by column, a tile brings none at
  /// first. A tile goes home as soon as it is done.
  void row_by_row() {
    for (std::int64_t i = 0; i < shape_.tiles; ++i) {
      for (std::int64_t j = 0; j < i; ++j) {
        for (std::int64_t k = 0; k < j; ++k) update(i, j, k);
        step(Kind::trsm, i, j, j);
      }
      for (std::int64_t k = 0; k < i; ++k) update(i, i, k);
      step(Kind::potrf, i, i, i);
    }
  }

 private:
  void right_looking(Range columns) {
    for (std::int64_t k = columns.begin; k < columns.end; ++k) {
      step(Kind::potrf, k, k, k);
      for (std::int64_t i = k + 1; i < shape_.tiles; ++i) step(Kind::trsm, i, k, k);
      for (std::int64_t j = k + 1; j < columns.end; ++j)
        for (std::int64_t i = j; i < shape_.tiles; ++i) update(i, j, k);
    }
  }
  void step(Kind kind, std::int64_t i, std::int64_t j, std::int64_t k) const {
    Step step{kind, narrow(i), narrow(j), narrow(k), cholesky_owner(shape_, i, j), 0};
    step.priority = ranks_.priority(step, index_, from_left_);
    emit_(step);
  }
  void update(std::int64_t i, std::int64_t j, std::int64_t k) const {
    step(i == j ? Kind::syrk : Kind::gemm, i, j, k);
  }
  static std::int32_t narrow(std::int64_t index) { return static_cast<std::int32_t>(index); }

  const CholeskyShape& shape_;
  Ranks ranks_;
  const std::function<void(const Step&)>& emit_;
  std::int64_t index_ = 0;
  bool from_left_ = false;
};

/// As many rows of devices as columns, or half as many.
Grid grid_of(std::int64_t devices) noexcept {
  auto rows = static_cast<std::int64_t>(std::sqrt(static_cast<double>(devices)));
  while (devices % rows != 0) --rows;
  return {rows, devices / rows};
}

/// Rows modulo a number of classes: a device for each pair of classes, and for the pairs of equal
/// ones either devices of their own, two classes each, or those of the other pairs in turn. Then
/// the row and the column of a tile meet fewer devices than on a grid. 0: no such number for so
/// many. Source: Beaumont et al., Symmetric block-cyclic distribution, SC 2022.
std::int64_t symmetric_classes(std::int64_t devices) noexcept {
  for (std::int64_t classes = 3; classes * (classes - 1) / 2 <= devices; ++classes) {
    if (classes * (classes - 1) / 2 == devices) return classes;
    if (classes % 2 == 0 && classes * classes / 2 == devices) return classes;
  }
  return 0;
}

std::int32_t symmetric_owner(std::int64_t devices, std::int64_t classes, std::int64_t i,
                             std::int64_t j) noexcept {
  const std::int64_t pairs = classes * (classes - 1) / 2;
  std::int64_t large = std::max(i % classes, j % classes);
  std::int64_t small = std::min(i % classes, j % classes);
  if (large == small) {
    if (pairs < devices) return static_cast<std::int32_t>(pairs + large % (classes / 2));
    const std::int64_t other = (large + 1 + (i / classes + j / classes) % (classes - 1)) % classes;
    large = std::max(large, other);
    small = std::min(small, other);
  }
  return static_cast<std::int32_t>(large * (large - 1) / 2 + small);
}

}  // namespace

std::vector<std::int64_t> cholesky_blocks(const CholeskyShape& shape) {
  if (shape.tiles == 0) return {};
  const std::int64_t together = shape.memory * shape.devices;
  constexpr std::int64_t staging = 6;  // per device: operands on their way
  if (shape.memory == 0 ||
      block_tiles(shape.tiles, shape.tiles) + staging * shape.devices <= together)
    return {shape.tiles};
  std::vector<std::int64_t> widths;
  for (std::int64_t first = 0; first < shape.tiles; first += widths.back()) {
    const std::int64_t rows = shape.tiles - first;
    // The rows of a column on the left that the block's own rows need stay while it is applied.
    const auto needed = [&](std::int64_t width) {
      return block_tiles(rows, width) + (width + staging) * shape.devices;
    };
    std::int64_t width = 1;
    while (width < rows && needed(width + 1) <= together) ++width;
    widths.push_back(width);
  }
  return widths;
}

std::int32_t cholesky_owner(const CholeskyShape& shape, std::int64_t i, std::int64_t j) noexcept {
  const std::int64_t places = std::max(shape.devices, shape.places);
  const std::int64_t classes = symmetric_classes(places);
  if (classes > 0 && uses(SpecialCase::symmetric_owners))
    return symmetric_owner(places, classes, i, j);
  const Grid grid = grid_of(places);
  return static_cast<std::int32_t>((i % grid.rows) * grid.cols + j % grid.cols);
}

void cholesky_order(const CholeskyShape& shape, const std::function<void(const Step&)>& emit) {
  const std::vector<std::int64_t> widths = cholesky_blocks(shape);
  Emitter emitter(shape, static_cast<std::int64_t>(widths.size()), emit);
  if (shape.devices == 1 && shape.memory > 0 && widths.size() == 1 && uses(SpecialCase::row_by_row))
    return emitter.row_by_row();
  std::int64_t first = 0;
  for (std::size_t index = 0; index < widths.size(); ++index) {
    emitter.block(static_cast<std::int64_t>(index), {first, first + widths[index]});
    first += widths[index];
  }
}

}  // namespace quadriga::linalg
