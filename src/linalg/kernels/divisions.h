// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/divisions.h: how the tile kernels divide: the same kernels on a finer grid.
//
// The grid follows from the tile's shape alone, so the bits don't depend on how many cores take
// part. Products and rank updates keep their inner dimension whole, solves their triangle: parts of
// what they write don't wait for each other. Only a factorization's fine tasks follow each other.
// A kernel adds none if its parameters don't say `fine`, or if its tile is too small.
#pragma once

#include "linalg/kernels/tile.h"

#include <quadriga/division.h>

#include <vector>

namespace quadriga::kernels {

/// Rows or columns of a fine tile of `length` ones; `length` if it isn't divided.
std::int64_t fine_length(std::int64_t length) noexcept;

struct FinePart {
  std::int64_t first;
  std::int64_t count;
};
std::vector<FinePart> fine_parts(std::int64_t length);

View rows_of(const View& view, FinePart rows);
View columns_of(const View& view, FinePart columns);
View block_of(const View& view, FinePart rows, FinePart columns);
/// The rows of op(view).
View rows_of(const View& view, Op op, FinePart rows);

}  // namespace quadriga::kernels
