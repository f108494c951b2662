// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/sparse_matrix.h: sparse matrices in the caller's memory, and those of grids.
#pragma once

#include <quadriga/types.h>

#include <cstdint>
#include <functional>

namespace quadriga::sparse {

/// A matrix in compressed sparse row format in the caller's memory. Columns may be in any order;
/// duplicate elements are summed.
struct CsrView {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t elements = 0;      ///< In `columns` and in `values`.
  const void* offsets = nullptr;  ///< rows + 1 integers: where each row starts, and the end.
  const void* columns = nullptr;
  const void* values = nullptr;
  int index_bytes = 4;  ///< Of an offset and of a column: 4 or 8, signed.
  DType dtype = DType::float64;
};

/// A square matrix whose rows are read when they are needed, so that it is never whole in memory.
struct RowSource {
  std::int64_t rows = 0;
  DType dtype = DType::float64;
  /// The rows [first, last): a matrix of last - first rows and `rows` columns, valid until the next
  /// call. Called by the thread that makes or updates a solver, up to four times for each row, and
  /// expected to find the same elements each time. May throw.
  std::function<CsrView(std::int64_t first, std::int64_t last)> read = {};
};

/// Points of a box: x varies fastest. A dimension of 1 makes it flat.
struct BoxGrid {
  std::int64_t x = 1;
  std::int64_t y = 1;
  std::int64_t z = 1;
  int points = 7;  ///< Of the stencil: 7, or 27.
};

/// Rows, and elements, of the Laplacian of a grid.
std::int64_t rows_of(const BoxGrid& grid) noexcept;
std::int64_t elements_of(const BoxGrid& grid) noexcept;

/// Writes the rows [first, last) of the negative Laplacian with zero boundary values: the diagonal
/// is one less than the points of the stencil (in a flat box, of the flat one), its neighbours -1.
/// Offsets are relative to the first row's, last - first + 1 of them; columns ascend in each row.
/// Errors: invalid_argument for another stencil or type, sizes below 1, or rows out of range.
void laplacian(const BoxGrid& grid, std::int64_t first, std::int64_t last, std::int64_t* offsets,
               std::int64_t* columns, void* values, DType dtype);

}  // namespace quadriga::sparse
