// SPDX-License-Identifier: BSD-3-Clause
// src/memory/evictor.cpp: blocks for several tiles, victims that leave, and where they go.
#include "memory/evictor.h"

#include <algorithm>
#include <vector>

namespace quadriga {

bool Evictor::allocate_all(std::span<const Need> needs, SpaceId space) {
  Directory& directory = replicas_.directory();
  // What some of them hold already is no room for the others.
  for (const Need& need : needs) directory.pin(need.tile, space);
  std::size_t missing = allocate_some(needs, space);
  while (missing > 0 && make_room(missing, space) == Awaits::nothing)
    missing = allocate_some(needs, space);
  for (const Need& need : needs) directory.unpin(need.tile, space);
  if (missing == 0) return true;
  for (const Need& need : needs) residency_.release_if_unused(need.tile, space);
  return false;
}

/// As many as there is room for; the bytes of the others.
std::size_t Evictor::allocate_some(std::span<const Need> needs, SpaceId space) {
  std::size_t missing = 0;
  for (std::size_t i = 0; i < needs.size(); ++i) {
    const TileId tile = needs[i].tile;
    const bool is_new = std::ranges::count(needs.first(i), tile, &Need::tile) == 0;
    if (is_new && !residency_.allocate(tile, space))
      missing += residency_.pool(space).rounded(replicas_.block_bytes(tile, space));
  }
  return missing;
}

Awaits Evictor::make_room(std::size_t bytes, SpaceId space) {
  const std::size_t wanted = residency_.pool(space).lacking(bytes);
  // What leaves already makes enough room when it has gone.
  const std::size_t leaving = transfers_.leaving_bytes(space);
  if (leaving >= wanted && leaving > 0) return Awaits::room;
  const Awaits awaited = evict_all(victims_.choose(wanted, space, true), space);
  if (awaited != Awaits::buffer || space == host_space) return awaited;
  const std::vector<TileId> others = victims_.choose(wanted, space, false);
  return others.empty() ? awaited : evict_all(others, space);
}

/// Done once all are gone, those that are dirty after they were written back.
Awaits Evictor::evict_all(std::span<const TileId> victims, SpaceId space) {
  const auto is_dirty = [&](TileId tile) { return replicas_.directory().dirty(tile, space); };
  Awaits awaited = victims.empty() ? Awaits::room : Awaits::nothing;
  // The clean ones first, or what holds them on the host might leave its buffer to a dirty one. The
  // host's with the last of all (invariant 1).
  if (space != host_space || std::ranges::none_of(victims, is_dirty))
    for (const TileId tile : victims)
      if (!is_dirty(tile)) residency_.drop(tile, space);
  for (const TileId tile : victims) {
    if (!replicas_.has_block(tile, space) || !is_dirty(tile)) continue;
    if (!send_away(tile, space))
      awaited = Awaits::buffer;
    else if (awaited == Awaits::nothing)
      awaited = Awaits::room;
  }
  return awaited;
}

/// Queues what brings a dirty tile out of a space; false if there is no room on its way.
bool Evictor::send_away(TileId tile, SpaceId space) {
  if (space != host_space) return send_home(tile, Reason::evict);
  if (replicas_.directory().home(tile) == host_space) return write_to_file(tile);
  return write_backs_.write_back(tile, Reason::evict);
}

bool Evictor::send_home(TileId tile, Reason reason) {
  if (write_backs_.write_back(tile, reason)) return true;
  const Need need{tile, Access::read};
  return allocate_all({&need, 1}, host_space) && write_backs_.write_back(tile, reason);
}

/// Queues a copy from a buffer of the host to the file; false if that is full.
bool Evictor::write_to_file(TileId tile) {
  const Need need{tile, Access::write};
  if (!allocate_all({&need, 1}, residency_.file())) return false;
  transfers_.queue(tile, host_space, residency_.file(), Reason::evict);
  return true;
}

bool Evictor::evict_before(TileId tile, SpaceId space, std::uint64_t position) {
  if (!replicas_.has_block(tile, space)) return true;
  if (!replicas_.idle(tile, space) || forecast_.next_use(tile, space) <= position) return false;
  if (replicas_.directory().dirty(tile, space)) {
    write_backs_.write_back(tile, Reason::evict);
    return false;
  }
  residency_.drop(tile, space);
  return true;
}

Awaits Evictor::drain(SpaceId space) {
  const std::span<const TileId> residents = residency_.pool(space).residents();
  Awaits awaited = Awaits::room;
  for (std::size_t i = residents.size(); i-- > 0;) {
    const TileId tile = residents[i];
    if (!replicas_.idle(tile, space)) continue;
    if (replicas_.directory().dirty(tile, space)) {
      if (!send_home(tile, Reason::evict)) awaited = Awaits::buffer;
      continue;
    }
    residency_.drop(tile, space);
  }
  return residency_.pool(space).residents().empty() ? Awaits::nothing : awaited;
}

}  // namespace quadriga
