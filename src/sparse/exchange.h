// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/exchange.h: which elements of vectors each part needs of others, from the sparsity.
// Pure.
//
// A part has the rows [first, last) of the matrix and of each vector. Its halo are the columns of
// its rows outside of these, ascending, so that those of one owner stand together. A local column
// is a row of the part, or the number of its rows plus a place in the halo.
#pragma once

#include <quadriga/sparse.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace quadriga::sparse {

/// What one part needs.
struct Halo {
  std::vector<std::int64_t> columns;  ///< Of the matrix, ascending.
  std::vector<bool> border;           ///< By block of the part: whether a row of it needs some.
};

/// How rows are read: by blocks for sums, and by dense blocks of as many columns.
struct RowUnits {
  std::int64_t block_rows = 1;
  int dense_rows = 1;
  bool whole = false;  ///< All other columns are the halo.
};

/// Rows, or columns, from the first on and before the last.
struct IndexRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

/// Calls work(i) for all i below a count, at once where threads are free.
/// Errors: one that `work` threw.
using RunAll = std::function<void(std::size_t, const std::function<void(std::size_t)>&)>;

/// How many pieces so many blocks of rows with so many elements are worked on in: a piece's work is
/// long beside handing it to a thread.
constexpr std::int64_t pieces_of(std::int64_t blocks, std::int64_t elements) noexcept {
  constexpr std::int64_t least_elements = std::int64_t{1} << 15;
  constexpr std::int64_t most = 64;
  return std::clamp<std::int64_t>(std::min(blocks, elements / least_elements), 1, most);
}

/// The halo of some rows, in whole dense blocks, beside the columns that the part has; by default
/// those of its rows' numbers. `run` may be null.
/// Errors: invalid_argument naming an element whose column is out of range.
Halo find_halo(const CsrView& a, IndexRange rows, IndexRange own, const RowUnits& units,
               const RunAll& run = {});
Halo find_halo(const CsrView& a, std::int64_t first, std::int64_t last, const RowUnits& units,
               const RunAll& run = {});

/// Elements that go from one part to another: a range of the receiver's halo.
struct HaloTransfer {
  int from = 0;
  int to = 0;
  std::int64_t first = 0;  ///< In the receiver's halo.
  std::int64_t count = 0;
};

/// All transfers, ascending by receiver, then by sender. `first_rows`: of each part, and the end.
std::vector<HaloTransfer> plan_exchange(std::span<const Halo> halos,
                                        std::span<const std::int64_t> first_rows);

/// Makes local columns of columns, in constant time: a bit for each column of the matrix, and
/// counts of those before.
class LocalColumns {
 public:
  LocalColumns(std::int64_t first, std::int64_t last, std::int64_t cols,
               std::span<const std::int64_t> halo);
  std::int32_t operator[](std::int64_t column) const noexcept {
    if (column >= first_ && column < last_) return static_cast<std::int32_t>(column - first_);
    const Word& word = words_[static_cast<std::size_t>(column / 64)];
    const std::uint64_t before = word.bits & ((std::uint64_t{1} << (column % 64)) - 1);
    return static_cast<std::int32_t>(last_ - first_ + word.before + std::popcount(before));
  }

 private:
  struct Word {
    std::uint64_t bits = 0;
    std::int64_t before = 0;
  };
  std::int64_t first_;
  std::int64_t last_;
  std::vector<Word> words_;
};

}  // namespace quadriga::sparse
