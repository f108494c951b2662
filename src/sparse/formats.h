// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/formats.h: how rows are stored, chosen by bytes.
#pragma once

#include <quadriga/engine.h>
#include <quadriga/sparse.h>

#include "sparse/row_reader.h"

namespace quadriga::sparse {

struct ChosenFormat {
  Format format = Format::csr;
  int dense_rows = 1;
  double bytes = 0;  ///< Of all elements, with their columns.
};

/// What is wanted, or what stores the fewest bytes on machines of this kind: of the pattern and the
/// kinds of devices alone, never of their number.
/// Errors: invalid_argument if dense blocks are wanted, and none of their sizes divides the rows.
ChosenFormat choose_format(Engine& engine, const RowReader& reader, Format wanted);

/// Whether M is a cycle through levels.
constexpr bool has_levels(Precondition precondition) noexcept {
  return precondition == Precondition::aggregation || precondition == Precondition::hierarchy;
}
/// Whether M is several tasks.
constexpr bool has_steps(Precondition precondition) noexcept {
  return has_levels(precondition) || precondition == Precondition::chebyshev;
}

/// Rows of M's blocks; 1: a diagonal, 0: the identity.
/// Where M has levels they are those that the options say.
/// Errors: invalid_argument if blocks are wanted that don't divide the rows.
int inverse_rows_of(const CsrView& a, const ChosenFormat& chosen, const SolverOptions& options);

/// Rows of a block of sums: a multiple of the dense block's and of M's.
std::int64_t block_rows_of(const CsrView& a, const ChosenFormat& chosen, int inverse_rows) noexcept;

/// Rows, or rows of dense blocks, of a slice. On GPUs they are a warp's; cores have no more than a
/// block of sums, and go from row to row of dense blocks.
std::int64_t slice_rows_of(const Machine& machine, Format format, std::int64_t block_rows) noexcept;

/// Whether SELL may have 16-bit columns: not yet on GPUs, where they are to be measured first.
bool may_narrow(const Machine& machine) noexcept;

}  // namespace quadriga::sparse
