// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/partition.cpp: blocks of rows go to parts by a running sum of bytes.
#include "sparse/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

namespace quadriga::sparse {

std::int64_t block_rows_of(std::int64_t rows) noexcept {
  // Small matrices have blocks for several devices too; large ones have short lists of sums.
  constexpr std::int64_t least = 8;
  constexpr std::int64_t most = 512;
  constexpr std::int64_t wanted_blocks = 64;
  const auto share = static_cast<std::uint64_t>(std::max<std::int64_t>(1, rows / wanted_blocks));
  return std::clamp(static_cast<std::int64_t>(std::bit_floor(share)), least, most);
}

void check_offsets(const CsrView& a) {
  require(a.index_bytes == 4 || a.index_bytes == 8,
          fmt::format("indices of {} bytes; expected 4 or 8", a.index_bytes));
  require(a.dtype <= DType::complex128,
          "a sparse matrix of bytes; expected float32, float64, complex64 or complex128");
  require(a.rows >= 0 && a.cols >= 0 && a.elements >= 0,
          fmt::format("a matrix of {} x {} with {} elements; expected sizes of 0 or more", a.rows,
                      a.cols, a.elements));
  require(a.offsets != nullptr || a.rows == 0,
          fmt::format("the offsets of a matrix are null; expected {} of them", a.rows + 1));
  if (a.rows == 0) return;
  const Indices offsets(a.offsets, a.index_bytes);
  require(offsets[0] == 0, fmt::format("the first offset is {}; expected 0", offsets[0]));
  for (std::int64_t row = 0; row < a.rows; ++row)
    if (offsets[row + 1] < offsets[row]) [[unlikely]]
      fail(Errc::invalid_argument,
           fmt::format("row {} begins at {} and ends at {}; offsets must not descend", row,
                       offsets[row], offsets[row + 1]));
  require(
      offsets[a.rows] <= a.elements,
      fmt::format("the last offset is {}, but there are {} elements", offsets[a.rows], a.elements));
  require(offsets[a.rows] == 0 || (a.columns && a.values),
          "a matrix with elements needs their columns and values");
}

std::vector<std::int64_t> cut_rows(const CsrView& a, std::int64_t block_rows,
                                   std::span<const double> weights, std::int64_t row_bytes) {
  const Indices offsets(a.offsets, a.index_bytes);
  const auto element_bytes = static_cast<std::int64_t>(size_of(a.dtype) + sizeof(std::int32_t));
  const auto bytes_before = [&](std::int64_t row) {
    return static_cast<double>(offsets[row] * element_bytes + row * row_bytes);
  };
  const double total_bytes = a.rows > 0 ? bytes_before(a.rows) : 0;
  const double total_weight = std::accumulate(weights.begin(), weights.end(), 0.0);
  const std::int64_t blocks = blocks_of(a.rows, block_rows);
  std::vector<std::int64_t> first{0};
  double weight = 0;
  std::int64_t block = 0;
  for (std::size_t part = 0; part + 1 < weights.size(); ++part) {
    weight += weights[part];
    const double wanted = total_bytes * weight / total_weight;
    const auto row_of = [&](std::int64_t at) { return std::min(at * block_rows, a.rows); };
    // The first block that begins at or behind the wanted place, or the one before if nearer.
    std::int64_t low = block;
    std::int64_t high = blocks;
    while (low < high) {
      const std::int64_t middle = (low + high) / 2;
      if (bytes_before(row_of(middle)) < wanted)
        low = middle + 1;
      else
        high = middle;
    }
    const bool is_before_nearer =
        low > block && wanted - bytes_before(row_of(low - 1)) < bytes_before(row_of(low)) - wanted;
    block = is_before_nearer ? low - 1 : low;
    first.push_back(row_of(block));
  }
  first.push_back(a.rows);
  return first;
}

}  // namespace quadriga::sparse
