// SPDX-License-Identifier: BSD-3-Clause
// src/memory/staging.cpp: sources, room and copies of what a task needs.
#include "memory/staging.h"

namespace quadriga {

/// A partial sum is added to, so its content must be there.
bool Staging::must_be_fetched(const Need& need, SpaceId space) const {
  return need.access != Access::write && !replicas_.directory().valid(need.tile, space);
}

/// Where to copy from, and whether that may be done now. No_space: by way of the host, which has
/// no buffer to spare; where it has one, that copy is queued. `ahead`: of its use.
/// Nothing is copied between devices of which one is probed: it would fail again and again until it
/// is known which of them is gone. A copy from or to the host tells that itself; if made ahead, it
/// needn't.
Awaits Staging::find_source(TileId tile, SpaceId to, SpaceId& from, bool ahead) {
  const Directory& directory = replicas_.directory();
  from = transfers_.source_for(tile, to);
  // Where no link joins the two devices.
  const bool is_by_host = from == no_space && to != host_space;
  const SpaceId first = is_by_host ? transfers_.source_for(tile, host_space) : from;
  // Home is overwritten only once the content is certain, and so is the host's memory.
  const bool is_careful = is_by_host || to == host_space || to == directory.home(tile);
  if (first == no_space || (is_careful && !transfers_.confirmed(tile, first)))
    return Awaits::source;
  const bool is_in_doubt = transfers_.probing(first) || transfers_.probing(to);
  const bool tells = first == host_space || to == host_space || is_by_host;
  if (is_in_doubt && (ahead || !tells)) return Awaits::source;
  if (is_by_host && residency_.allocate(tile, host_space)) {
    transfers_.queue(tile, first, host_space, Reason::stage);
    from = host_space;
  }
  return Awaits::nothing;
}

Outcome Staging::stage(std::span<const Need> needs, SpaceId space) {
  Directory& directory = replicas_.directory();
  for (const Need& need : needs) {
    SpaceId from = no_space;
    if (directory.home_lost(need.tile)) return Refusal::home_lost;
    if (!must_be_fetched(need, space)) continue;
    if (!directory.written(need.tile)) return Refusal::unwritten;
    const Awaits awaited = find_source(need.tile, space, from, false);
    if (awaited != Awaits::nothing) return awaited;
  }
  if (space == host_space && !evictor_.allocate_all(needs, space)) return Awaits::buffer;
  for (const Need& need : needs) directory.pin(need.tile, space);
  Awaits awaited = space == host_space ? Awaits::nothing : reserve(needs, space);
  const bool lacks_buffer = awaited == Awaits::buffer;
  if (awaited == Awaits::nothing || lacks_buffer) awaited = fetch(needs, space);
  if (lacks_buffer) awaited = Awaits::buffer;
  if (awaited != Awaits::nothing)
    for (const Need& need : needs) residency_.unpin(need.tile, space);
  return awaited;
}

/// Blocks on a device for all that isn't at home there.
Awaits Staging::reserve(std::span<const Need> needs, SpaceId space) {
  for (const Need& need : needs)
    while (!residency_.allocate(need.tile, space))
      if (const Awaits awaited = evictor_.make_room(replicas_.block_bytes(need.tile, space), space);
          awaited != Awaits::nothing)
        return awaited;
  return Awaits::nothing;
}

/// Queues the copies that are missing, where there is a block for them. What finds no buffer on its
/// way by the host comes later: when others have passed, which stay where they are.
Awaits Staging::fetch(std::span<const Need> needs, SpaceId space) {
  Awaits awaited = Awaits::nothing;
  for (const Need& need : needs) {
    const TileId tile = need.tile;
    if (space != host_space && !replicas_.has_memory(tile, space)) continue;
    replicas_.touch(tile, space);
    if (!must_be_fetched(need, space)) continue;
    if (transfers_.source_for(tile, space) == no_space) {
      if (!evictor_.allocate_all({&need, 1}, host_space)) {
        awaited = Awaits::buffer;
        continue;
      }
      transfers_.queue(tile, transfers_.source_for(tile, host_space), host_space, Reason::stage);
    }
    bring(tile, space, Reason::stage);
  }
  return awaited;
}

/// From the nearest replica; slice by slice if another device wants it next, which can be given
/// what has arrived. If the nearest is the host's, perhaps by way of a device that has a quicker
/// link and room: it keeps the tile, as others may want it.
void Staging::bring(TileId tile, SpaceId space, Reason reason) {
  SpaceId from = transfers_.source_for(tile, space);
  if (from == host_space) {
    const SpaceId via = transfers_.relay_for(tile, host_space, space);
    if (via != no_space && residency_.has_plenty(via) && residency_.allocate(tile, via)) {
      transfers_.queue(tile, host_space, via, Reason::prefetch,
                       transfers_.slices_by_way_of(tile, host_space, via, space));
      from = via;
    }
  }
  const SpaceId next = wanted_beside(tile, space);
  const std::size_t slices =
      next == no_space ? 1 : transfers_.slices_by_way_of(tile, from, space, next);
  if (slices > 1 || from != host_space || !replicas_.at_home(tile, host_space))
    return transfers_.queue(tile, from, space, reason, slices);
  column_.assign(1, tile);
  add_below(space);
  transfers_.queue_column(column_, space, reason);
}

/// Another device whose tasks read what the tile holds, and which has yet to get it; no_space if
/// none is known.
SpaceId Staging::wanted_beside(TileId tile, SpaceId space) const {
  std::uint64_t rest = forecast_.readers(tile) >> 1;  // the host is no device
  for (SpaceId other = 1; rest != 0; ++other, rest >>= 1)
    if ((rest & 1) && other != space && !replicas_.directory().valid(tile, other)) return other;
  return no_space;
}

/// As many of the tiles below as make the runs of a copy long, where they are wanted by the time
/// that it ends, and nothing has to leave for them.
void Staging::add_below(SpaceId space) {
  std::size_t run = replicas_.info(column_.front()).width_bytes;
  std::size_t bytes = replicas_.bytes(column_.front());
  if (!transfers_.is_short_run(space, run)) return;
  while (run < transfers_.long_run(space) && residency_.has_plenty(space)) {
    const TileId tile = replicas_.below(column_.back());
    if (tile == no_tile || !comes_along(tile, space)) return;
    bytes += replicas_.bytes(tile);
    const double seconds = transfers_.seconds(host_space, space, bytes);
    if (!forecast_.is_wanted_within(seconds, tile, space) || !residency_.allocate(tile, space))
      return;
    column_.push_back(tile);
    run += replicas_.info(tile).width_bytes;
  }
}

/// The host's content is the newest one, and no device has it already.
bool Staging::comes_along(TileId tile, SpaceId space) const {
  const Directory& directory = replicas_.directory();
  return directory.written(tile) && !directory.home_lost(tile) &&
         !replicas_.has_memory(tile, space) && directory.valid(tile, host_space) &&
         directory.arrived(tile, host_space) && transfers_.source_for(tile, space) == host_space;
}

Outcome Staging::prefetch(TileId tile, SpaceId space, std::uint64_t position,
                          std::span<const TileId> victims) {
  if (!replicas_.directory().written(tile)) return Refusal::unwritten;
  SpaceId from = no_space;
  const Awaits awaited = find_source(tile, space, from, true);
  if (awaited != Awaits::nothing) return awaited;
  if (from == no_space) return Awaits::source;
  if (!residency_.allocate(tile, space)) {
    bool all_gone = true;
    for (const TileId victim : victims) all_gone &= evictor_.evict_before(victim, space, position);
    if (!all_gone || !residency_.allocate(tile, space)) return Awaits::room;
  }
  if (!replicas_.directory().valid(tile, space)) bring(tile, space, Reason::prefetch);
  return Awaits::nothing;
}

}  // namespace quadriga
