// SPDX-License-Identifier: BSD-3-Clause
// src/memory/hand_over.cpp: which tiles leave the host, and where each goes.
#include "memory/hand_over.h"

#include <algorithm>
#include <vector>

namespace quadriga {

bool HandOver::make_room(std::span<const Need> needs, SpaceId space) {
  Directory& directory = replicas_.directory();
  const std::size_t wanted = lacking(needs, space);
  std::size_t gained = 0;
  // Invariant 2.
  for (const Need& need : needs) directory.pin(need.tile, space);
  if (space != host_space)
    for (const Need& need : needs)
      if (may_leave(need.tile) && send(need.tile, space)) gained += host_bytes(need.tile);
  std::vector<TileId> others;
  for (const TileId tile : residency_.pool(host_space).residents())
    if (may_leave(tile) && std::ranges::count(needs, tile, &Need::tile) == 0)
      others.push_back(tile);
  const std::vector<Candidate> ranked = victims_.ranked(others, host_space);
  // Those that devices have as well make room at once.
  for (const Candidate& each : ranked) {
    if (gained >= wanted || each.dirty) continue;
    residency_.drop(each.tile, host_space);
    gained += each.bytes;
  }
  for (const Candidate& each : ranked)
    if (gained < wanted && each.dirty && send_beside(each.tile, space)) gained += each.bytes;
  for (const Need& need : needs) directory.unpin(need.tile, space);
  return gained > 0;
}

std::size_t HandOver::host_bytes(TileId tile) const {
  return residency_.pool(host_space).rounded(replicas_.block_bytes(tile, host_space));
}

/// What has to become free on the host. A task there has all of its operands in buffers. For one on
/// a device its victims take as much as it lacks there; operands that come by way of the host pass
/// one after the other, and those that a link brings from another device not at all. At least a
/// tile, where blocks of a device lie badly.
std::size_t HandOver::lacking(std::span<const Need> needs, SpaceId space) const {
  const Pool& pool = residency_.pool(space);
  std::size_t missing = 0, passing = 0;
  for (std::size_t i = 0; i < needs.size(); ++i) {
    const TileId tile = needs[i].tile;
    if (std::ranges::count(needs.first(i), tile, &Need::tile) > 0) continue;
    if (!replicas_.has_memory(tile, space))
      missing += pool.rounded(replicas_.block_bytes(tile, space));
    if (passes_host(needs[i], space)) passing = std::max(passing, host_bytes(tile));
  }
  const Pool& host = residency_.pool(host_space);
  if (space == host_space) return std::max<std::size_t>(host.lacking(missing), 1);
  const std::size_t leaving = missing - std::min(missing, pool.free_bytes());
  return std::max<std::size_t>(host.lacking(std::max(leaving, passing)), 1);
}

/// Its content has yet to get a buffer of the host, on its way to a device.
bool HandOver::passes_host(const Need& need, SpaceId space) const {
  const Directory& directory = replicas_.directory();
  return space != host_space && need.access != Access::write &&
         !directory.valid(need.tile, space) && !replicas_.has_memory(need.tile, host_space) &&
         transfers_.source_for(need.tile, space) == no_space;
}

/// What a buffer of the host holds may lie on a device instead: it has no other home.
bool HandOver::may_leave(TileId tile) const {
  const Directory& directory = replicas_.directory();
  return directory.home(tile) == host_space && replicas_.has_block(tile, host_space) &&
         directory.arrived(tile, host_space) && replicas_.idle(tile, host_space) &&
         transfers_.confirmed(tile, host_space);
}

/// Queues a copy to a device, if there is room, or clean replicas can make it.
bool HandOver::send(TileId tile, SpaceId to) {
  const bool is_device = to != host_space && to != residency_.file();
  if (!is_device || !residency_.pool(to).has_memory() || replicas_.directory().gone(to))
    return false;
  if (replicas_.has_memory(tile, to) || !transfers_.joined(host_space, to) ||
      transfers_.probing(to))
    return false;
  if (!residency_.allocate(tile, to)) {
    const std::size_t bytes = replicas_.block_bytes(tile, to);
    for (const TileId victim : victims_.choose_clean(bytes, to)) residency_.drop(victim, to);
    if (!residency_.allocate(tile, to)) return false;
  }
  transfers_.queue(tile, host_space, to, Reason::evict);
  return true;
}

/// To the device with the most free memory that has room, except one.
bool HandOver::send_beside(TileId tile, SpaceId space) {
  std::vector<SpaceId> devices;
  for (SpaceId other = 1; other < replicas_.spaces(); ++other)
    if (other != space && residency_.pool(other).has_memory()) devices.push_back(other);
  std::ranges::stable_sort(devices, std::ranges::greater(),
                           [&](SpaceId each) { return residency_.pool(each).free_bytes(); });
  return std::ranges::any_of(devices, [&](SpaceId each) { return send(tile, each); });
}

}  // namespace quadriga
