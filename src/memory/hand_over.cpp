// SPDX-License-Identifier: BSD-3-Clause
// src/memory/hand_over.cpp: which tiles leave the host, and where each goes.
#include "memory/hand_over.h"

#include <algorithm>
#include <vector>

namespace quadriga {

bool HandOver::make_room(std::span<const Need> needs, SpaceId space) {
  const Directory& directory = replicas_.directory();
  const Pool& host = residency_.pool(host_space);
  const auto bytes_there = [&](TileId tile) {
    return host.rounded(replicas_.block_bytes(tile, host_space));
  };
  std::size_t wanted = 0, gained = 0;
  for (const Need& need : needs)
    if (!replicas_.has_memory(need.tile, space)) wanted += bytes_there(need.tile);
  if (space == host_space) wanted = host.lacking(wanted);
  for (const Need& need : needs)
    if (space != host_space && may_leave(need.tile) && directory.dirty(need.tile, host_space) &&
        send(need.tile, space))
      gained += bytes_there(need.tile);
  std::vector<TileId> others;
  for (const TileId tile : host.residents())
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
  return gained > 0;
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
