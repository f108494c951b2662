// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/exchange.cpp: columns are marked in a bit map; ranges of the halo belong to owners.
#include "sparse/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <numeric>

#include "sparse/partition.h"
#include "sparse/row_pieces.h"

namespace quadriga::sparse {
namespace {

/// Places of a bit map that are marked, ascending, with all of their dense blocks.
std::vector<std::int64_t> marked_columns(const std::vector<std::uint64_t>& marks, int dense_rows) {
  std::vector<std::int64_t> columns;
  for (std::size_t word = 0; word < marks.size(); ++word)
    for (std::uint64_t bits = marks[word]; bits != 0; bits &= bits - 1) {
      const auto column = static_cast<std::int64_t>(word) * 64 + std::countr_zero(bits);
      const std::int64_t begin = column / dense_rows * dense_rows;
      if (!columns.empty() && columns.back() >= begin) continue;
      for (std::int64_t each = begin; each < begin + dense_rows; ++each) columns.push_back(each);
    }
  return columns;
}

std::vector<std::int64_t> columns_outside(std::int64_t first, std::int64_t last,
                                          std::int64_t cols) {
  std::vector<std::int64_t> columns(static_cast<std::size_t>(first + cols - last));
  const auto middle = columns.begin() + first;
  std::iota(columns.begin(), middle, 0);
  std::iota(middle, columns.end(), last);
  return columns;
}

/// Marks the columns of some rows that aren't the part's own, and calls `see` for these rows.
template <class Index, class See>
void mark_columns(const CsrView& a, IndexRange rows, IndexRange own,
                  std::vector<std::uint64_t>& marks, See see) {
  const auto* const offsets = static_cast<const Index*>(a.offsets);
  const auto* const columns = static_cast<const Index*>(a.columns);
  for (std::int64_t row = rows.first; row < rows.last; ++row) {
    bool is_border = false;
    for (std::int64_t at = offsets[row]; at < offsets[row + 1]; ++at) {
      const std::int64_t column = columns[at];
      if (column >= own.first && column < own.last) continue;
      if (column < 0 || column >= a.cols) [[unlikely]]
        fail(Errc::invalid_argument,
             fmt::format("row {} has an element in column {}; expected 0 to {}", row, column,
                         a.cols - 1));
      std::atomic_ref word(marks[static_cast<std::size_t>(column / 64)]);
      const std::uint64_t bit = std::uint64_t{1} << (column % 64);
      if ((word.load(std::memory_order_relaxed) & bit) == 0)
        word.fetch_or(bit, std::memory_order_relaxed);
      is_border = true;
    }
    if (is_border) see(row);
  }
}

template <class Index>
Halo halo_of(const CsrView& a, IndexRange rows, IndexRange own, const RowUnits& units,
             const RunAll& run) {
  std::vector<std::uint64_t> marks(static_cast<std::size_t>((a.cols + 63) / 64));
  const std::int64_t blocks = blocks_of(rows.last - rows.first, units.block_rows);
  // Not bits, which several pieces would share.
  std::vector<char> borders(static_cast<std::size_t>(blocks));
  const Indices offsets(a.offsets, a.index_bytes);
  RowPieces pieces{run};
  pieces.cut(rows, units.block_rows, offsets[rows.last] - offsets[rows.first]);
  pieces.each([&](const RowPiece& piece, std::size_t) {
    mark_columns<Index>(a, piece.rows, own, marks, [&](std::int64_t row) {
      borders[static_cast<std::size_t>((row - rows.first) / units.block_rows)] = 1;
    });
  });
  Halo halo;
  halo.border.assign(borders.begin(), borders.end());
  halo.columns = units.whole ? columns_outside(own.first, own.last, a.cols)
                             : marked_columns(marks, units.dense_rows);
  return halo;
}

}  // namespace

Halo find_halo(const CsrView& a, IndexRange rows, IndexRange own, const RowUnits& units,
               const RunAll& run) {
  return a.index_bytes == 4 ? halo_of<std::int32_t>(a, rows, own, units, run)
                            : halo_of<std::int64_t>(a, rows, own, units, run);
}

Halo find_halo(const CsrView& a, std::int64_t first, std::int64_t last, const RowUnits& units,
               const RunAll& run) {
  return find_halo(a, {first, last}, {first, last}, units, run);
}

std::vector<HaloTransfer> plan_exchange(std::span<const Halo> halos,
                                        std::span<const std::int64_t> first_rows) {
  std::vector<HaloTransfer> transfers;
  for (std::size_t to = 0; to < halos.size(); ++to) {
    const std::vector<std::int64_t>& columns = halos[to].columns;
    auto begin = columns.begin();
    for (std::size_t from = 0; from < halos.size(); ++from) {
      const auto end = std::lower_bound(begin, columns.end(), first_rows[from + 1]);
      if (end != begin)
        transfers.push_back(
            {static_cast<int>(from), static_cast<int>(to), begin - columns.begin(), end - begin});
      begin = end;
    }
  }
  return transfers;
}

LocalColumns::LocalColumns(std::int64_t first, std::int64_t last, std::int64_t cols,
                           std::span<const std::int64_t> halo)
    : first_(first), last_(last) {
  if (halo.empty()) return;
  words_.resize(static_cast<std::size_t>((cols + 63) / 64));
  for (const std::int64_t column : halo)
    words_[static_cast<std::size_t>(column / 64)].bits |= std::uint64_t{1} << (column % 64);
  std::int64_t before = 0;
  for (Word& word : words_) {
    word.before = before;
    before += std::popcount(word.bits);
  }
}

}  // namespace quadriga::sparse
