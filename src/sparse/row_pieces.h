// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/row_pieces.h: the rows of a part are worked on in pieces, at once where threads are
// free.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "sparse/exchange.h"

namespace quadriga::sparse {

/// Whole blocks of rows, and where they are stored.
struct RowPiece {
  IndexRange rows;
  std::int64_t slice = 0;     ///< Its first one, of the part.
  std::int64_t elements = 0;  ///< Of the part that are stored before its own.
};

struct RowPieces {
  RunAll run = {};  ///< Null: all is one piece.
  std::vector<RowPiece> all = {};

  /// Cuts rows with so many elements.
  void cut(IndexRange rows, std::int64_t block_rows, std::int64_t elements) {
    const std::int64_t blocks = (rows.last - rows.first + block_rows - 1) / block_rows;
    const std::int64_t count = run ? pieces_of(blocks, elements) : 1;
    all.assign(static_cast<std::size_t>(count), {});
    for (std::int64_t i = 0; i < count; ++i) {
      const auto begin = [&](std::int64_t at) {
        return std::min(rows.last, rows.first + blocks * at / count * block_rows);
      };
      all[static_cast<std::size_t>(i)].rows = {begin(i), begin(i + 1)};
    }
  }
  /// Calls `work(piece, its number)` for all.
  template <class Work>
  void each(Work work) {
    const auto one = [&](std::size_t i) { work(all[i], i); };
    if (all.size() == 1) return one(0);
    run(all.size(), one);
  }
};

}  // namespace quadriga::sparse
