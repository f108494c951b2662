// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/formats.cpp: bytes of elements against those of dense blocks.
#include "sparse/formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <string>
#include <vector>

#include "device/kinds.h"
#include "sparse/content.h"
#include "sparse/dense_blocks.h"
#include "sparse/partition.h"

namespace quadriga::sparse {
namespace {

constexpr std::int64_t warp_rows = 32;

bool has_warps(const Machine& machine) {
  return std::ranges::any_of(
      machine.devices, [](const Device& each) { return properties_of(each.kind).runs_warps; });
}

/// All blocks of the matrix, counted by several threads; more than `most` is no count.
std::int64_t count_blocks(Engine& engine, const CsrView& a, int dense_rows, std::int64_t most) {
  constexpr std::int64_t wanted_chunks = 64;
  const std::int64_t rows = a.rows / dense_rows;
  const std::int64_t chunks = std::min(wanted_chunks, rows);
  std::atomic<std::int64_t> count = 0;
  run_on_host(engine, static_cast<std::size_t>(chunks), [&](std::size_t index) {
    const auto chunk = static_cast<std::int64_t>(index);
    const std::int64_t left = most - count.load();
    if (left < 0) return;
    count += count_dense_blocks(a, dense_rows, rows * chunk / chunks * dense_rows,
                                rows * (chunk + 1) / chunks * dense_rows, left);
  });
  return count;
}

/// Elements that SELL stores of the rows as they are cut by default, with those that fill slices.
std::int64_t elements_in_slices(const CsrView& a) {
  const Indices offsets(a.offsets, a.index_bytes);
  const std::int64_t height = block_rows_of(a.rows);
  std::vector<std::int64_t> lengths;
  std::int64_t stored = 0;
  for (std::int64_t first = 0; first < a.rows; first += height) {
    const std::int64_t last = std::min(first + height, a.rows);
    lengths.clear();
    for (std::int64_t row = first; row < last; ++row)
      lengths.push_back(offsets[row + 1] - offsets[row]);
    std::ranges::sort(lengths, std::ranges::greater());
    const auto rows = static_cast<std::size_t>(std::min(warp_rows, height & -height));
    for (std::size_t i = 0; i < lengths.size(); i += rows)
      stored += lengths[i] * static_cast<std::int64_t>(rows);
  }
  return stored;
}

}  // namespace

ChosenFormat choose_format(Engine& engine, const RowReader& reader, Format wanted) {
  const CsrView& a = reader.outline();
  const std::int64_t elements =
      a.rows > 0 ? Indices(a.offsets, a.index_bytes)[a.rows] : std::int64_t{0};
  const double bytes = element_bytes(a.dtype, static_cast<double>(elements));
  if (wanted == Format::csr || wanted == Format::sell) return {wanted, 1, bytes};
  // Threads of a GPU, or lanes of a core, have a row each, whose elements lie beside each other.
  const bool is_free = wanted == Format::automatic;
  const bool has_slices =
      has_warps(engine.machine()) || (is_free && static_cast<double>(elements_in_slices(a)) <=
                                                     most_fill * static_cast<double>(elements));
  ChosenFormat best{has_slices ? Format::sell : Format::csr, 1, bytes};
  if (elements == 0 && is_free) return best;
  double least = is_free ? bytes : double{INFINITY};
  for (const int size : dense_sizes) {
    if (a.rows % size != 0 || a.cols % size != 0) continue;
    const double most = is_free ? most_fill * static_cast<double>(elements) / (size * size)
                                : static_cast<double>(elements);
    const std::int64_t count = reader.is_whole()
                                   ? count_blocks(engine, a, size, static_cast<std::int64_t>(most))
                                   : reader.dense_blocks(size);
    const double dense = dense_bytes(a.dtype, size, static_cast<double>(count));
    if (static_cast<double>(count) > most || dense >= least) continue;
    least = dense;
    best = {Format::blocks, size, dense};
  }
  if (!is_free && best.format != Format::blocks)
    fail(Errc::invalid_argument,
         fmt::format("format 'blocks' of a matrix of {} rows; expected a multiple of 2 or 3",
                     a.rows));
  return best;
}

int inverse_rows_of(const CsrView& a, const ChosenFormat& chosen, const SolverOptions& options) {
  if (options.precondition == Precondition::none) return 0;
  if (has_levels(options.precondition)) return std::max(1, options.inverse_rows);
  if (options.precondition != Precondition::block_jacobi) return 1;
  const auto fits = [&](int size) {
    return std::ranges::count(dense_sizes, size) > 0 && a.rows % size == 0;
  };
  if (options.inverse_rows == 0 && chosen.dense_rows > 1) return chosen.dense_rows;
  int size = options.inverse_rows;
  if (size == 0)
    for (const int each : dense_sizes)
      if (fits(each)) size = each;
  require(fits(size), fmt::format("block Jacobi preconditioner: blocks of {} rows in a matrix of "
                                  "{}; expected 2, 3 or 4, a divisor of the rows",
                                  size == 0 ? "2, 3 or 4" : std::to_string(size), a.rows));
  return size;
}

std::int64_t block_rows_of(const CsrView& a, const ChosenFormat& chosen,
                           int inverse_rows) noexcept {
  // Three times 256 rows: as many as threads of a block on a GPU, or slices for eight warps.
  constexpr int odd = 3;
  const bool is_odd = chosen.dense_rows == odd || inverse_rows == odd;
  return is_odd ? odd * std::min<std::int64_t>(block_rows_of(a.rows / odd), 256)
                : block_rows_of(a.rows);
}

std::int64_t slice_rows_of(const Machine& machine, Format format,
                           std::int64_t block_rows) noexcept {
  if (has_warps(machine)) return warp_rows;
  return format == Format::blocks ? 1 : std::min(warp_rows, block_rows & -block_rows);
}

bool may_narrow(const Machine& machine) noexcept { return !has_warps(machine); }

}  // namespace quadriga::sparse
