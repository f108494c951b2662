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

ProductOrder::ProductOrder(const ProductShape& shape) : shape_(shape) {
  if (shape.rows.size() <= 0 || shape.cols.size() <= 0 || shape.inner <= 0) return;
  if (shape.memory == 0)
    plan_host();
  else
    plan_panels();
}

void ProductOrder::plan_host() {
  for (std::int64_t j = shape_.cols.begin; j < shape_.cols.end; ++j)
    stages_.push_back({shape_.rows, {j, j + 1}, false});
}

void ProductOrder::plan_panels() {
  for (std::int64_t j = shape_.cols.begin; j < shape_.cols.end; ++j)
    stages_.push_back({shape_.rows, {j, j + 1}, true});
}

bool ProductOrder::next(std::vector<Product>& out) {
  out.clear();
  if (done_ == stages_.size()) return false;
  const Stage& stage = stages_[done_++];
  const auto push = [&](std::int64_t i, std::int64_t j, std::int64_t k) {
    out.push_back({narrow(i), narrow(j), narrow(k)});
  };
  if (stage.by_steps) {
    for (std::int64_t k = 0; k < shape_.inner; ++k)
      for (std::int64_t j = stage.cols.begin; j < stage.cols.end; ++j)
        for (std::int64_t i = stage.rows.begin; i < stage.rows.end; ++i) push(i, j, k);
    return true;
  }
  for (std::int64_t j = stage.cols.begin; j < stage.cols.end; ++j)
    for (std::int64_t i = stage.rows.begin; i < stage.rows.end; ++i)
      for (std::int64_t k = 0; k < shape_.inner; ++k) push(i, j, k);
  return true;
}

}  // namespace quadriga::linalg
