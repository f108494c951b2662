// SPDX-License-Identifier: BSD-3-Clause
// src/message/pack/device_table.cpp: how wide a table's entries must be, and their values.
#include "message/pack/device_table.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace quadriga::message {
namespace {

constexpr std::int64_t most_narrow = std::numeric_limits<std::uint32_t>::max();

std::size_t padded(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

std::size_t entries(std::int64_t count, bool wide) {
  return padded(static_cast<std::size_t>(count) * (wide ? 8 : 4));
}

void put(std::byte* entries, bool wide, std::int64_t index, std::int64_t value) {
  if (wide)
    reinterpret_cast<std::int64_t*>(entries)[index] = value;
  else
    reinterpret_cast<std::uint32_t*>(entries)[index] = static_cast<std::uint32_t>(value);
}

}  // namespace

std::vector<RunSlice> slices_of(const RunList& list, std::int64_t most_runs) {
  std::vector<RunSlice> slices;
  const auto runs = static_cast<std::int64_t>(list.size()) - 1;
  for (std::int64_t first = 0; first < runs; first += most_runs) {
    const std::int64_t count = std::min(most_runs, runs - first);
    slices.push_back({first, count, list[static_cast<std::size_t>(first)].packed,
                      list[static_cast<std::size_t>(first + count)].packed});
  }
  return slices;
}

TableShape::TableShape(const RunList& list, const RunSlice& slice)
    : runs_(list.data() + slice.first, static_cast<std::size_t>(slice.runs) + 1) {
  const std::int64_t length = runs_[1].packed - runs_[0].packed;
  std::int64_t low = runs_[0].offset, high = low;
  std::uint64_t differences = 0;
  std::int64_t lengths = 0;
  bool equal = true;
  for (std::size_t i = 0; i + 1 < runs_.size(); ++i) {
    low = std::min(low, runs_[i].offset);
    high = std::max(high, runs_[i].offset);
    differences |= static_cast<std::uint64_t>(runs_[i].offset - runs_[0].offset);
    lengths |= runs_[i + 1].packed - runs_[i].packed;
    equal = equal && runs_[i + 1].packed - runs_[i].packed == length;
  }
  table_.low = low;
  table_.runs = slice.runs;
  table_.grain_shift = differences == 0 ? 0 : std::countr_zero(differences);
  table_.wide_offsets = ((high - low) >> table_.grain_shift) > most_narrow;
  table_.wide_positions = slice.end - slice.begin > most_narrow;
  table_.run = FastDivision(length);
  table_.divisors = low | static_cast<std::int64_t>(differences) | lengths;
  bytes_ = entries(slice.runs, table_.wide_offsets);
  if (equal) return;
  positions_at_ = bytes_;
  bytes_ += entries(slice.runs + 1, table_.wide_positions);
  first_at_ = bytes_;
  units_ = ((slice.end - slice.begin - 1) >> list_unit_shift) + 1;
  bytes_ += entries(units_ + 1, false);
}

ListTable TableShape::at(const std::byte* address) const noexcept {
  ListTable table = table_;
  table.offsets = address;
  if (positions_at_ == 0) return table;
  table.positions = address + positions_at_;
  table.first = reinterpret_cast<const std::uint32_t*>(address + first_at_);
  return table;
}

void TableShape::write(std::byte* into) const {
  const std::int64_t begin = runs_[0].packed;
  std::int64_t unit = 0;
  for (std::int64_t i = 0; i < table_.runs; ++i) {
    const ListedRun& run = runs_[static_cast<std::size_t>(i)];
    put(into, table_.wide_offsets, i, (run.offset - table_.low) >> table_.grain_shift);
    if (positions_at_ == 0) continue;
    put(into + positions_at_, table_.wide_positions, i, run.packed - begin);
    const std::int64_t end = runs_[static_cast<std::size_t>(i) + 1].packed - begin;
    for (; unit < units_ && unit << list_unit_shift < end; ++unit)
      put(into + first_at_, false, unit, i);
  }
  if (positions_at_ == 0) return;
  put(into + positions_at_, table_.wide_positions, table_.runs, runs_.back().packed - begin);
  put(into + first_at_, false, units_, table_.runs - 1);
}

}  // namespace quadriga::message
