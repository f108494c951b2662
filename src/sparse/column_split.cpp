// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/column_split.cpp: rows are counted, then copied, by pieces.
#include "sparse/column_split.h"

#include <cstring>
#include <numeric>

#include "sparse/partition.h"
#include "sparse/row_pieces.h"

namespace quadriga::sparse {

ColumnsOfRows::ColumnsOfRows(const CsrView& a, IndexRange rows, std::int64_t block_rows,
                             IndexRange columns, const RunAll& run)
    : sizes_(a), offsets_(static_cast<std::size_t>(a.rows) + 1) {
  const Indices offsets(a.offsets, a.index_bytes);
  const Indices from(a.columns, a.index_bytes);
  const auto each_element = [&](std::int64_t row, auto work) {
    for (std::int64_t at = offsets[row]; at < offsets[row + 1]; ++at)
      if (from[at] >= columns.first && from[at] < columns.last) work(at);
  };
  RowPieces pieces{run};
  pieces.cut(rows, block_rows, offsets[rows.last] - offsets[rows.first]);
  pieces.each([&](const RowPiece& piece, std::size_t) {
    for (std::int64_t row = piece.rows.first; row < piece.rows.last; ++row)
      each_element(row, [&](std::int64_t) { ++offsets_[static_cast<std::size_t>(row) + 1]; });
  });
  std::partial_sum(offsets_.begin(), offsets_.end(), offsets_.begin());
  const auto count = static_cast<std::size_t>(offsets_.back());
  const std::size_t size = size_of(a.dtype);
  columns_.resize(count);
  values_.resize(count * size);
  const auto* const values = static_cast<const std::byte*>(a.values);
  pieces.each([&](const RowPiece& piece, std::size_t) {
    auto to = static_cast<std::size_t>(offsets_[static_cast<std::size_t>(piece.rows.first)]);
    for (std::int64_t row = piece.rows.first; row < piece.rows.last; ++row)
      each_element(row, [&](std::int64_t at) {
        columns_[to] = from[at];
        std::memcpy(&values_[to++ * size], values + static_cast<std::size_t>(at) * size, size);
      });
  });
}

CsrView ColumnsOfRows::view() const noexcept {
  CsrView view = sizes_;
  view.elements = offsets_.back();
  view.offsets = offsets_.data();
  view.columns = columns_.data();
  view.values = values_.data();
  view.index_bytes = sizeof(std::int64_t);
  return view;
}

void each_sheet(const CsrView& a, const PartRows& rows, const Storage& storage,
                const std::vector<HaloTransfer>& arrivals,
                const std::vector<std::int64_t>& first_rows, const RunAll& run,
                const WorkOnSheet& work) {
  const IndexRange all{rows.first, rows.last};
  const Halo halo{rows.halo->columns, std::vector<bool>(rows.halo->border.size(), false)};
  PartRows sheet = rows;
  sheet.halo = &halo;
  const auto with = [&](std::size_t index, IndexRange columns, const Storage& stored) {
    const ColumnsOfRows part(a, all, storage.block_rows, columns, run);
    work(index, part.view(), sheet, stored);
  };
  with(0, rows.own, storage);
  sheet.send_rows = {};
  Storage without_m = storage;
  without_m.inverse_rows = 0;
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    const auto from = static_cast<std::size_t>(arrivals[i].from);
    with(i + 1, {first_rows[from], first_rows[from + 1]}, without_m);
  }
}

}  // namespace quadriga::sparse
