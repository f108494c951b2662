// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/column_split.h: the elements of a part's rows by the owners of their columns. Pure.
#pragma once

#include <quadriga/sparse.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "sparse/pack.h"

namespace quadriga::sparse {

/// The elements of some rows whose columns are in a range, in their order: a matrix as large, whose
/// other rows are empty.
class ColumnsOfRows {
 public:
  /// Copies them. `run` may be null.
  ColumnsOfRows(const CsrView& a, IndexRange rows, std::int64_t block_rows, IndexRange columns,
                const RunAll& run);
  CsrView view() const noexcept;

 private:
  CsrView sizes_;
  std::vector<std::int64_t> offsets_;
  std::vector<std::int64_t> columns_;
  std::vector<std::byte> values_;
};

/// A matrix that is stored of a part, and how.
using WorkOnSheet = std::function<void(std::size_t sheet, const CsrView& a, const PartRows& rows,
                                       const Storage& storage)>;

/// Calls work for the elements in a part's own columns, then for those in the columns of each
/// sender. None of their blocks is border: who multiplies them knows what they wait for. Local
/// columns are those of the whole part. `first_rows`: of each part, and the end.
void each_sheet(const CsrView& a, const PartRows& rows, const Storage& storage,
                const std::vector<HaloTransfer>& arrivals,
                const std::vector<std::int64_t>& first_rows, const RunAll& run,
                const WorkOnSheet& work);

}  // namespace quadriga::sparse
