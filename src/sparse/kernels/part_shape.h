// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/part_shape.h: how a part of a matrix, and the vectors of a solve, lie in one
// tile of bytes each.
//
// A part is one tile, so that a task has few operands: arrays one after the other, each aligned.
// Kernels get the tile's address on their device and these offsets, which are known on the host.
#pragma once

#include <quadriga/sparse.h>

#include <cstddef>
#include <cstdint>

namespace quadriga::sparse {

inline constexpr std::int64_t array_alignment = 256;

constexpr std::int64_t aligned(std::int64_t bytes) noexcept {
  return (bytes + array_alignment - 1) / array_alignment * array_alignment;
}

/// Where the arrays of a part begin, in bytes, and how long they are.
///
/// CSR: row i has elements offsets[i] to offsets[i + 1] of `columns` and `values`.
/// SELL: rows are sorted by length within each block and taken `slice_rows` at a time; element j of
/// row r of slice s is at offsets[s] + j*slice_rows + r. `lengths` and `order` have slices *
/// slice_rows elements: how many elements the row has, and which row of the part it is; -1: none.
/// Blocks: the same of dense blocks of d x d elements instead of elements, where d is `dense_rows`:
/// a row of them is d rows of the part, `columns` has one element for each, divided by d, and
/// element (i, c) of block j of row r is value (offsets[s]*d + (j*d + c)*slice_rows + r)*d + i.
/// Narrow SELL: columns of element j of a slice's rows are `bases` at offsets[s]/slice_rows + j,
/// plus 16 bits each.
struct PartShape {
  Format format = Format::csr;
  DType dtype = DType::float64;
  std::int64_t rows = 0;
  std::int64_t own_columns = 0;  ///< Before the halo: the rows, of a square matrix.
  std::int64_t halo = 0;
  std::int64_t elements = 0;  ///< With padding.
  int dense_rows = 1;
  bool narrow = false;  ///< Of SELL.
  std::int64_t block_rows = 0;
  std::int64_t blocks = 0;
  std::int64_t inner_blocks = 0;  ///< They come first in `block_order`.
  std::int64_t slice_rows = 0;
  std::int64_t slices = 0;
  std::int64_t sends = 0;       ///< Elements of a vector that go to other parts.
  int inverse_rows = 0;         ///< M's blocks of so many rows; 1: a diagonal, 0: the identity.
  bool has_remainders = false;  ///< Elements in columns of other parts are stored elsewhere.

  std::int64_t block_order = 0;  ///< int32: blocks.
  std::int64_t send_rows = 0;    ///< int32: rows of the part, by receiver.
  std::int64_t inverses = 0;     ///< M: inverse_rows elements for each row.
  std::int64_t head_bytes = 0;   ///< The arrays so far: all that tasks but products read.
  std::int64_t offsets = 0;      ///< int64: rows + 1, or slices + 1.
  std::int64_t lengths = 0;      ///< int32, not of CSR.
  std::int64_t order = 0;        ///< int32, not of CSR.
  std::int64_t bases = 0;        ///< int32, narrow SELL only: elements / slice_rows.
  std::int64_t columns =
      0;  ///< int32, uint16 of narrow SELL, local (exchange.h): elements / dense_rows^2.
  std::int64_t values = 0;
  std::int64_t bytes = 0;
};

/// How many columns are stored.
constexpr std::int64_t stored_columns(const PartShape& shape) noexcept {
  return shape.elements / (std::int64_t{shape.dense_rows} * shape.dense_rows);
}

/// Slices of a block of rows; the last block may have fewer.
constexpr std::int64_t slices_of_block(const PartShape& shape) noexcept {
  const std::int64_t rows = shape.slice_rows * shape.dense_rows;
  return (shape.block_rows + rows - 1) / rows;
}

/// Bytes of vectors of one column that a remainder's product moves: it writes the partial product,
/// then reads it and q, and writes q.
constexpr std::int64_t remainder_vector_bytes(const PartShape& shape) noexcept {
  constexpr std::int64_t passes = 4;
  return passes * shape.rows * static_cast<std::int64_t>(size_of(shape.dtype));
}

/// Sets the offsets by the sizes.
void lay_out(PartShape& shape) noexcept;

/// Vectors that methods with one reduction an iteration (one_reduction.h) carry beside p, q and r;
/// of `rows` each. Single-reduction iterations have the first two.
struct RecurrencesShape {
  std::int64_t direction = 0;
  std::int64_t product = 0;
  std::int64_t u = 0;
  std::int64_t w = 0;
  std::int64_t m_product = 0;
  std::int64_t am_product = 0;
  std::int64_t states =
      0;  ///< ColumnState, one a column: as the last task that read them had them.
};

/// Vectors of one part of a solve: p has rows and halo, q and r have rows; `columns` each. On a GPU
/// blocks of threads count themselves at `arrived`. Where M is several tasks, z is M*r, d what was
/// added to z last, and s = r - A*z; they have rows, and the halos that matrices of M need.
struct WorkShape {
  std::int64_t columns = 1;
  std::int64_t p = 0;
  std::int64_t q = 0;
  std::int64_t r = 0;
  std::int64_t z = 0;
  std::int64_t d = 0;
  std::int64_t s = 0;
  std::int64_t arrived = 0;
  std::int64_t partial = 0;  ///< Of `rows`: what the columns of another part add to q.
  std::int64_t bytes = 0;
  bool has_levels = false;  ///< Whether there are z, d and s.
  CgMethod method = CgMethod::classic;
  RecurrencesShape recurrences;  ///< Of methods other than classic.
};

WorkShape work_shape(const PartShape& part, std::int64_t columns,
                     CgMethod method = CgMethod::classic) noexcept;

/// Of a part of a level of M.
struct LevelSize {
  DType dtype = DType::float64;
  std::int64_t rows = 0;
  std::int64_t halo_of_d = 0;
  std::int64_t halo_of_s = 0;
  std::int64_t halo_of_z = 0;
  bool is_finest = false;  ///< With p and r; p has the halo of d.
};

WorkShape work_shape(const LevelSize& size, std::int64_t columns) noexcept;

}  // namespace quadriga::sparse
