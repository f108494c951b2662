// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/pack.h: rows of the caller's matrix become a part in one tile of bytes.
#pragma once

#include <quadriga/sparse.h>

#include <span>

#include "sparse/exchange.h"
#include "sparse/kernels/part_shape.h"
#include "sparse/row_pieces.h"

namespace quadriga::sparse {

/// What a part is made of.
struct PartRows {
  std::int64_t first = 0;
  std::int64_t last = 0;
  const Halo* halo = nullptr;
  std::span<const std::int64_t> send_rows;  ///< Of the matrix, by receiver.
  IndexRange own;  ///< The columns whose elements of vectors the part has: its rows' numbers.
};

/// How rows are stored.
struct Storage {
  Format format = Format::csr;
  int dense_rows = 1;
  std::int64_t block_rows = 1;
  std::int64_t slice_rows = 32;
  int inverse_rows = 0;  ///< Of M.
  bool may_narrow = true;
};

/// The sizes of a part, and of `pieces`, which it cuts.
/// Errors: too_large if its local columns don't fit 32 bits.
PartShape shape_of(const CsrView& a, const PartRows& rows, const Storage& storage,
                   RowPieces& pieces);

/// Writes the part to a tile of shape.bytes, M's diagonal included, by the pieces of shape_of().
/// Errors: invalid_argument naming a row whose diagonal of M is zero or not finite, or the first
///         one of a diagonal block that is singular.
void pack(const CsrView& a, const PartRows& rows, const PartShape& shape,
          const SolverOptions& options, RowPieces& pieces, std::byte* tile);

/// Whether two tiles of one shape have elements in the same places.
bool same_pattern(const PartShape& shape, const std::byte* one, const std::byte* other);

}  // namespace quadriga::sparse
