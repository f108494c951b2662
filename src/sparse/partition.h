// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/partition.h: rows in blocks, and blocks in parts of similar bytes. Pure.
#pragma once

#include <quadriga/sparse.h>

#include <span>
#include <vector>

namespace quadriga::sparse {

/// Rows of a block, by which sums are formed: of the number of rows alone, so that they are the
/// same for any number of devices. Powers of two.
std::int64_t block_rows_of(std::int64_t rows) noexcept;

constexpr std::int64_t blocks_of(std::int64_t rows, std::int64_t block_rows) noexcept {
  return (rows + block_rows - 1) / block_rows;
}

/// An index of a matrix, of whichever width.
class Indices {
 public:
  Indices(const void* data, int bytes) noexcept : data_(data), bytes_(bytes) {}
  std::int64_t operator[](std::int64_t at) const noexcept {
    return bytes_ == 4 ? static_cast<const std::int32_t*>(data_)[at]
                       : static_cast<const std::int64_t*>(data_)[at];
  }

 private:
  const void* data_;
  int bytes_;
};

/// Refuses sizes, types and offsets that are those of no matrix.
/// Errors: invalid_argument naming what is wrong and where.
void check_offsets(const CsrView& a);

/// Cuts rows into parts that begin at blocks, whose bytes are in proportion to the weights; the
/// first row of each part, and the number of rows. Parts may be empty if there are few blocks.
/// `row_bytes`: what a row costs beside its elements.
std::vector<std::int64_t> cut_rows(const CsrView& a, std::int64_t block_rows,
                                   std::span<const double> weights, std::int64_t row_bytes);

}  // namespace quadriga::sparse
