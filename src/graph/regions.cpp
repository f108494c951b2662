// SPDX-License-Identifier: BSD-3-Clause
// src/graph/regions.cpp: which regions share bytes, and which of those that are known.
#include "graph/regions.h"

#include <algorithm>
#include <bit>

namespace quadriga {
namespace {

/// Columns without gaps are one.
Region merged(Region region) noexcept {
  if (region.columns > 1 && region.pitch == region.width)
    return {region.first, region.width * region.columns, 1, 0};
  return region;
}

std::int64_t floor_of(std::int64_t a, std::int64_t b) noexcept {
  return a / b - (a % b < 0 ? 1 : 0);
}

/// Of a region that isn't empty.
int size_class(const Region& region) noexcept {
  return static_cast<int>(std::bit_width(region.span()) - 1);
}

}  // namespace

Region region_of(const Datum& datum) noexcept {
  return {reinterpret_cast<std::uintptr_t>(datum.home), datum.width_bytes(), datum.columns(),
          static_cast<std::size_t>(datum.ld) * size_of(datum.dtype)};
}

Region region_of(const View& view) noexcept {
  const std::size_t element = size_of(view.dtype);
  return {reinterpret_cast<std::uintptr_t>(view.data),
          static_cast<std::size_t>(view.rows) * element, static_cast<std::size_t>(view.cols),
          static_cast<std::size_t>(view.ld) * element};
}

bool overlap(const Region& given_a, const Region& given_b) noexcept {
  if (given_a.empty() || given_b.empty()) return false;
  const Region a = merged(given_a);
  const Region b = merged(given_b);
  if (a.first >= b.first + b.span() || b.first >= a.first + a.span()) return false;
  if (a.columns > 1 && b.columns > 1 && a.pitch != b.pitch) return true;
  if (a.columns == 1 && b.columns == 1) return true;
  // Column j of a and column k of b overlap if (j - k) pitches are about as far as b is behind a.
  const auto pitch = static_cast<std::int64_t>(a.columns > 1 ? a.pitch : b.pitch);
  const auto behind = static_cast<std::int64_t>(b.first - a.first);
  const std::int64_t least = floor_of(behind - static_cast<std::int64_t>(a.width), pitch) + 1;
  const std::int64_t most = floor_of(behind + static_cast<std::int64_t>(b.width) - 1, pitch);
  return std::max(least, 1 - static_cast<std::int64_t>(b.columns)) <=
         std::min(most, static_cast<std::int64_t>(a.columns) - 1);
}

bool covers(const Region& given_whole, const Region& given_part) noexcept {
  if (given_part.empty()) return true;
  if (given_whole.empty()) return false;
  const Region whole = merged(given_whole);
  const Region part = merged(given_part);
  if (part.first < whole.first) return false;
  const std::size_t behind = part.first - whole.first;
  if (whole.columns == 1) return behind + part.span() <= whole.width;
  if (part.columns > 1 && part.pitch != whole.pitch) return false;
  return behind % whole.pitch + part.width <= whole.width &&
         behind / whole.pitch + part.columns <= whole.columns;
}

std::size_t Regions::Hash::operator()(const Key& key) const noexcept {
  constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;
  std::uint64_t hash = reinterpret_cast<std::uintptr_t>(key.home) * golden;
  for (const std::int64_t part : {key.rows, key.cols, key.ld})
    hash = (std::rotl(hash, 23) ^ static_cast<std::uint64_t>(part)) * golden;
  return hash ^ static_cast<std::size_t>(key.dtype);
}

Datum* Regions::find(const std::byte* home, std::int64_t rows, std::int64_t cols, std::int64_t ld,
                     DType dtype) const {
  const auto found = exact_.find(key_of(home, rows, cols, ld, dtype));
  return found == exact_.end() ? nullptr : found->second;
}

void Regions::add(Datum& datum) {
  const Region region = region_of(datum);
  if (region.empty()) return;
  exact_[key_of(datum.home, datum.rows, datum.cols, datum.ld, datum.dtype)] = &datum;
  by_size_[static_cast<std::size_t>(size_class(region))].emplace(region.first, &datum);
}

void Regions::leave(Datum& datum) {
  const auto found = exact_.find(key_of(datum.home, datum.rows, datum.cols, datum.ld, datum.dtype));
  if (found != exact_.end() && found->second == &datum) exact_.erase(found);
}

void Regions::remove(Datum& datum) {
  const Region region = region_of(datum);
  if (region.empty()) return;
  leave(datum);
  auto& map = by_size_[static_cast<std::size_t>(size_class(region))];
  auto [at, end] = map.equal_range(region.first);
  while (at != end && at->second != &datum) ++at;
  if (at != end) map.erase(at);
}

void Regions::overlapping(const Region& region, std::vector<Datum*>& out) const {
  if (region.empty()) return;
  const std::uintptr_t end = region.first + region.span();
  for (std::size_t size = 0; size < by_size_.size(); ++size) {
    const auto& map = by_size_[size];
    if (map.empty()) continue;
    const std::uintptr_t longest = (std::uintptr_t{2} << size) - 1;
    const std::uintptr_t from = region.first > longest ? region.first - longest : 0;
    for (auto at = map.lower_bound(from); at != map.end() && at->first < end; ++at)
      if (overlap(region_of(*at->second), region)) out.push_back(at->second);
  }
}

}  // namespace quadriga
