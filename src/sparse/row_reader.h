// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/row_reader.h: the rows of the caller's matrix, whole in memory or read range by range.
#pragma once

#include <quadriga/engine.h>
#include <quadriga/sparse_matrix.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sparse/dense_blocks.h"

namespace quadriga::sparse {

/// The caller's matrix must outlive it. One thread uses it.
class RowReader {
 public:
  /// Errors: as check_offsets().
  RowReader(const CsrView& a);  // NOLINT: wherever rows are read, a whole matrix may be given.
  /// Reads all rows once. Errors: invalid_argument if a range has other sizes than it was asked
  /// for; what `read` throws.
  explicit RowReader(const RowSource& source);

  /// Sizes and offsets; columns and values only if the matrix is whole.
  const CsrView& outline() const noexcept { return outline_; }
  bool is_whole() const noexcept { return source_ == nullptr; }
  /// How many dense blocks of a size hold the elements, where the matrix isn't whole.
  std::int64_t dense_blocks(int dense_rows) const;

  /// Calls work(i, a) for each range [first_rows[i], first_rows[i + 1]): in `a` all other rows may
  /// be empty. One after the other, by this thread.
  void each(std::span<const std::int64_t> first_rows,
            const std::function<void(std::size_t, const CsrView&)>& work) const;

 private:
  struct Range;
  Range read(std::int64_t first, std::int64_t last) const;

  CsrView outline_;
  const RowSource* source_ = nullptr;
  std::vector<std::int64_t> offsets_;
  std::array<std::int64_t, dense_sizes.size()> dense_blocks_{};
};

}  // namespace quadriga::sparse
