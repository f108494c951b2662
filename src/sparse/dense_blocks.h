// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/dense_blocks.h: dense blocks of d x d elements in a sparse pattern. Pure.
//
// Blocks lie on the grid of d rows and d columns that begins at the first element of the matrix:
// those of a discretization with d unknowns a node, one after the other.
#pragma once

#include <quadriga/sparse.h>

#include <array>
#include <cstdint>
#include <vector>

namespace quadriga::sparse {

/// The sizes that are tried.
inline constexpr std::array<int, 3> dense_sizes{2, 3, 4};

/// Values that blocks may store for an element of the matrix, where the format isn't asked for.
inline constexpr double most_fill = 1.25;

/// Which blocks the d rows from d*`row` on touch: their columns divided by d, ascending.
void find_dense_columns(const CsrView& a, int dense_rows, std::int64_t row,
                        std::vector<std::int64_t>& found);

/// How many blocks hold the elements of the rows [first, last), multiples of d; stops counting
/// beyond `most`.
std::int64_t count_dense_blocks(const CsrView& a, int dense_rows, std::int64_t first,
                                std::int64_t last, std::int64_t most);

/// Bytes of so many elements stored alone, with a column each.
constexpr double element_bytes(DType dtype, double elements) noexcept {
  return elements * static_cast<double>(size_of(dtype) + sizeof(std::int32_t));
}

/// Bytes of so many blocks, with a column each.
constexpr double dense_bytes(DType dtype, int dense_rows, double blocks) noexcept {
  return blocks * (dense_rows * dense_rows * static_cast<double>(size_of(dtype)) +
                   static_cast<double>(sizeof(std::int32_t)));
}

}  // namespace quadriga::sparse
