// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/divisions.cpp: the parts of a tile on the finer grid.
#include "linalg/kernels/divisions.h"

#include <algorithm>

namespace quadriga::kernels {

std::int64_t fine_length(std::int64_t length) noexcept {
  // The BLAS reaches most of its speed on an edge of 64, and on few tasks costs least.
  constexpr std::int64_t most_parts = 4;
  constexpr std::int64_t least = 64;
  constexpr std::int64_t granule = 16;
  const std::int64_t part = (length + most_parts - 1) / most_parts;
  const std::int64_t fine = std::max(least, (part + granule - 1) / granule * granule);
  return length < 2 * least ? length : fine;
}

std::vector<FinePart> fine_parts(std::int64_t length) {
  const std::int64_t most = fine_length(length);
  std::vector<FinePart> parts;
  for (std::int64_t first = 0; first < length; first += most)
    parts.push_back({first, std::min(most, length - first)});
  return parts;
}

View rows_of(const View& view, FinePart rows) {
  return part_of(view, rows.first, 0, rows.count, view.cols);
}

View columns_of(const View& view, FinePart columns) {
  return part_of(view, 0, columns.first, view.rows, columns.count);
}

View block_of(const View& view, FinePart rows, FinePart columns) {
  return part_of(view, rows.first, columns.first, rows.count, columns.count);
}

View rows_of(const View& view, Op op, FinePart rows) {
  return op == Op::none ? rows_of(view, rows) : columns_of(view, rows);
}

}  // namespace quadriga::kernels
