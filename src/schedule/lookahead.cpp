// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/lookahead.cpp: the replacement that lookahead foresees.
#include "schedule/lookahead.h"

#include <algorithm>

namespace quadriga {

void Lookahead::grow(TileId tile) {
  const std::size_t size = std::max<std::size_t>(tile + 1, round_of_.size() * 2);
  round_of_.resize(size, 0);
  is_here_.resize(size, false);
  next_use_.resize(size, 0);
  bytes_.resize(size, 0);
  visited_by_.resize(size, nullptr);
}

void Lookahead::forget(TileId tile) {
  Wanted& known = wanted_[tile];
  if (!known.missing) return;
  wanted_bytes_ -= known.bytes;
  if (known.fetchable) fetchable_.erase(known.operand);
  known = {};
  uses_.set_missing(tile, device_, false);
}

void Lookahead::want(TileId tile, const PlannedAccess& use, std::size_t bytes) {
  Wanted& known = wanted_[tile];
  known.missing = true;
  uses_.set_missing(tile, device_, true);
  known.bytes = bytes;
  wanted_bytes_ += bytes;
  if (!uses_.reads_present(use)) return;
  known.fetchable = true;
  known.operand = {use.position, use.operand};
  fetchable_.insert(known.operand, tile);
}

void Lookahead::validate() const {
  std::size_t bytes = 0, fetchable = 0;
  for (const Wanted& known : wanted_) {
    bytes += known.bytes;
    fetchable += known.fetchable;
  }
  fetchable_.validate();
  if (bytes != wanted_bytes_ || fetchable != fetchable_.size())
    fail(Errc::internal, "Lookahead: what is missing is counted wrong");
}

void Lookahead::begin(std::span<const Resident> residents, std::size_t free_bytes) {
  ++round_;
  free_bytes_ = free_bytes;
  residents_ = residents;
  ranked_ = false;
  visited_.clear();
  for (const Resident& resident : residents) {
    reserve(resident.tile);
    round_of_[resident.tile] = round_;
    is_here_[resident.tile] = true;
    bytes_[resident.tile] = resident.bytes;
    next_use_[resident.tile] = 0;  // not looked up yet
    visited_by_[resident.tile] = nullptr;
  }
}

void Lookahead::visit(const PlannedAccess& use) {
  const TileId tile = use.tile;
  if (ranked_) {
    present(tile, uses_.next_use_behind(use, device_));
    std::ranges::push_heap(farthest_);
    return;
  }
  const bool is_new = round_of_[tile] != round_ || !visited_by_[tile];
  mark(tile);
  visited_by_[tile] = &use;
  if (is_new) visited_.push_back(tile);
}

void Lookahead::rank() {
  ranked_ = true;
  idle_.clear();
  farthest_.clear();
  horizon_ = order_.horizon();
  for (const TileId tile : visited_)
    present(tile, uses_.next_use_behind(*visited_by_[tile], device_));
  for (const Resident& resident : residents_) {
    if (visited_by_[resident.tile]) continue;
    const std::uint64_t next_use = uses_.next_use_after(resident.tile, device_, 0);
    present(resident.tile, next_use);
    if (next_use > horizon_) idle_.push_back({next_use, resident.tile});
  }
  std::ranges::make_heap(idle_);
  std::ranges::make_heap(farthest_);
}

Lookahead::Entry Lookahead::take_greatest(std::vector<Entry>& heap) {
  std::ranges::pop_heap(heap);
  const Entry greatest = heap.back();
  heap.pop_back();
  return greatest;
}

TileId Lookahead::take_idle(const PlannedTask& planned) {
  while (!idle_.empty()) {
    const Entry entry = take_greatest(idle_);
    const auto is_operand = [&](const PlannedAccess& access) { return access.tile == entry.tile; };
    if (is_here_[entry.tile] && next_use_[entry.tile] == entry.next_use &&
        std::ranges::none_of(planned.accesses, is_operand))
      return entry.tile;
  }
  return no_tile;
}

std::vector<TileId> Lookahead::take(std::size_t bytes, const PlannedTask& planned) {
  std::vector<TileId> victims;
  if (free_bytes_ < bytes && !ranked_) rank();
  const auto leave = [&](TileId tile) {
    is_here_[tile] = false;
    free_bytes_ += bytes_[tile];
    victims.push_back(tile);
  };
  while (free_bytes_ < bytes) {
    const TileId idle = take_idle(planned);
    if (idle == no_tile) break;
    leave(idle);
  }
  std::vector<Entry> operands;
  while (free_bytes_ < bytes && !farthest_.empty()) {
    const Entry entry = take_greatest(farthest_);
    if (!is_here_[entry.tile] || next_use_[entry.tile] != entry.next_use) continue;
    const auto is_operand = [&](const PlannedAccess& access) { return access.tile == entry.tile; };
    if (std::ranges::any_of(planned.accesses, is_operand)) {
      operands.push_back(entry);
      continue;
    }
    leave(entry.tile);
  }
  for (const Entry& entry : operands) {
    farthest_.push_back(entry);
    std::ranges::push_heap(farthest_);
  }
  free_bytes_ -= std::min(free_bytes_, bytes);
  return victims;
}

}  // namespace quadriga
