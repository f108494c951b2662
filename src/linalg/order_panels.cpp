// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/order_panels.cpp: products on a device that holds a panel of A, column by column.
#include "linalg/order.h"

#include <algorithm>

namespace quadriga::linalg {
namespace {

class Panels {
 public:
  Panels(const PanelShape& shape, std::vector<Product>& out) : shape_(shape), out_(out) {}

  void list() {
    // Columns that advance together at a panel's start are those of the end of the one before.
    const std::int64_t count = shape_.cols.size();
    const std::int64_t together = std::clamp<std::int64_t>(shape_.together, 1, (count + 1) / 2);
    const std::int64_t at_start = std::clamp<std::int64_t>(shape_.at_start, together, count);
    advance(0, 0, at_start);
    const std::int64_t panels = (shape_.rows.size() + shape_.height - 1) / shape_.height;
    for (std::int64_t panel = 0; panel < panels; ++panel) {
      const std::int64_t begin = panel == 0 ? at_start : together;
      const std::int64_t end = std::max(begin, count - together);
      for (std::int64_t place = begin; place < end; ++place) advance(panel, place, place + 1);
      advance(panel, end, count);
      if (panel + 1 < panels) advance(panel + 1, 0, together);
    }
  }

 private:
  /// Columns by their places in the panel's order, which every other panel goes through backwards.
  void advance(std::int64_t panel, std::int64_t begin, std::int64_t end) {
    const bool backwards = panel % 2 != 0;
    const std::int64_t panels = (shape_.rows.size() + shape_.height - 1) / shape_.height;
    const Range rows = share(shape_.rows.size(), panels, panel);
    for (std::int64_t k = 0; k < shape_.inner; ++k)
      for (std::int64_t place = begin; place < end; ++place) {
        const std::int64_t j = backwards ? shape_.cols.end - 1 - place : shape_.cols.begin + place;
        for (std::int64_t i = rows.begin; i < rows.end; ++i)
          out_.push_back({static_cast<std::int32_t>(shape_.rows.begin + i),
                          static_cast<std::int32_t>(j), static_cast<std::int32_t>(k)});
      }
  }

  const PanelShape& shape_;
  std::vector<Product>& out_;
};

}  // namespace

void panel_products(const PanelShape& shape, std::vector<Product>& out) {
  out.clear();
  if (shape.rows.size() <= 0 || shape.cols.size() <= 0 || shape.inner <= 0) return;
  out.reserve(static_cast<std::size_t>(shape.rows.size() * shape.cols.size() * shape.inner));
  Panels(shape, out).list();
}

}  // namespace quadriga::linalg
