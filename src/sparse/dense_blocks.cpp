// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/dense_blocks.cpp: rows in ascending order are merged, others sorted.
#include "sparse/dense_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace quadriga::sparse {
namespace {

template <class Index>
bool ascends(const Index* columns, std::int64_t first, std::int64_t last) noexcept {
  bool found = true;
  for (std::int64_t at = first + 1; at < last; ++at) found &= columns[at - 1] <= columns[at];
  return found;
}

/// Calls `visit(column / D)` for all blocks of D rows, ascending and each once.
template <class Index, int D, class Visit>
void merge(const Index* columns, std::array<std::int64_t, D> at,
           const std::array<std::int64_t, D>& end, Visit visit) {
  constexpr Index no_column = std::numeric_limits<Index>::max();
  while (true) {
    Index least = no_column;
    for (int i = 0; i < D; ++i)
      if (at[i] < end[i]) least = std::min<Index>(least, columns[at[i]] / D);
    if (least == no_column) return;
    visit(least);
    for (int i = 0; i < D; ++i)
      while (at[i] < end[i] && columns[at[i]] / D == least) ++at[i];
  }
}

/// Whether D rows consist of full blocks, in ascending order.
template <class Index, int D>
bool are_full(const Index* columns, const std::array<std::int64_t, D>& begin,
              const std::array<std::int64_t, D>& end) noexcept {
  const std::int64_t count = end[0] - begin[0];
  const Index* const row = columns + begin[0];
  for (int i = 1; i < D; ++i)
    if (end[i] - begin[i] != count || !std::equal(row, row + count, columns + begin[i]))
      return false;
  if (count % D != 0) return false;
  bool found = true;
  Index before = -1;
  for (std::int64_t at = 0; at < count; at += D) {
    found &= row[at] % D == 0 && row[at] > before;
    for (int i = 1; i < D; ++i) found &= row[at + i] == row[at] + i;
    before = row[at];
  }
  return found;
}

template <class Index, int D, class Visit>
void visit_blocks(const CsrView& a, std::int64_t row, std::vector<std::int64_t>& scratch,
                  Visit visit) {
  const auto* const offsets = static_cast<const Index*>(a.offsets) + row * D;
  const auto* const columns = static_cast<const Index*>(a.columns);
  std::array<std::int64_t, D> begin{};
  std::array<std::int64_t, D> end{};
  for (int i = 0; i < D; ++i) {
    begin[i] = offsets[i];
    end[i] = offsets[i + 1];
  }
  if (are_full<Index, D>(columns, begin, end)) {
    for (std::int64_t at = begin[0]; at < end[0]; at += D) visit(columns[at] / D);
    return;
  }
  bool is_sorted = true;
  for (int i = 0; i < D; ++i) is_sorted = is_sorted && ascends(columns, begin[i], end[i]);
  if (is_sorted) return merge<Index, D>(columns, begin, end, visit);
  scratch.clear();
  for (std::int64_t at = begin[0]; at < end[D - 1]; ++at) scratch.push_back(columns[at] / D);
  std::ranges::sort(scratch);
  const auto tail = std::ranges::unique(scratch);
  scratch.erase(tail.begin(), tail.end());
  for (const std::int64_t each : scratch) visit(each);
}

/// Calls `work` with the type of an index and the size of a block.
template <class Work>
void with_types(const CsrView& a, int dense_rows, Work work) {
  const auto with_size = [&]<class Index>(Index index) {
    if (dense_rows == 2) return work(index, std::integral_constant<int, 2>{});
    if (dense_rows == 3) return work(index, std::integral_constant<int, 3>{});
    require(dense_rows == 4, fmt::format("dense blocks of {} rows; expected 2 to 4", dense_rows));
    return work(index, std::integral_constant<int, 4>{});
  };
  if (a.index_bytes == 4)
    with_size(std::int32_t{});
  else
    with_size(std::int64_t{});
}

}  // namespace

void find_dense_columns(const CsrView& a, int dense_rows, std::int64_t row,
                        std::vector<std::int64_t>& found) {
  found.clear();
  std::vector<std::int64_t> scratch;
  with_types(a, dense_rows, [&]<class Index, int D>(Index, std::integral_constant<int, D>) {
    visit_blocks<Index, D>(a, row, scratch, [&](std::int64_t each) { found.push_back(each); });
  });
}

std::int64_t count_dense_blocks(const CsrView& a, int dense_rows, std::int64_t first,
                                std::int64_t last, std::int64_t most) {
  std::int64_t count = 0;
  std::vector<std::int64_t> scratch;
  with_types(a, dense_rows, [&]<class Index, int D>(Index, std::integral_constant<int, D>) {
    for (std::int64_t row = first / D; row < last / D && count <= most; ++row)
      visit_blocks<Index, D>(a, row, scratch, [&](std::int64_t) { ++count; });
  });
  return count;
}

}  // namespace quadriga::sparse
