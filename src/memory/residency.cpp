// SPDX-License-Identifier: BSD-3-Clause
// src/memory/residency.cpp: victims, write-backs, and blocks that are released.
#include "memory/residency.h"

#include <algorithm>

namespace quadriga {

Residency::Residency(std::span<const SpaceResources> spaces, std::span<const Node> nodes,
                     const MemoryOptions& options, const TileForecast& forecast,
                     MemoryListener& listener, Replicas& replicas, Transfers& transfers)
    : forecast_(forecast),
      listener_(listener),
      replicas_(replicas),
      transfers_(transfers),
      rule_(options.rule ? *options.rule : farthest_use_),
      spill_(options.spill_bytes, options.spill_file, nodes) {
  pools_.reserve(spaces.size());
  for (const SpaceResources& space : spaces) near_.push_back(space.node);
  const auto file = std::ranges::find(spaces, true, &SpaceResources::is_file);
  if (file != spaces.end()) file_ = static_cast<SpaceId>(file - spaces.begin());
  for (SpaceId space = 0; space < spaces.size(); ++space)
    if (space == host_space)
      pools_.emplace_back(spill_);
    else if (spaces[space].device != no_device)
      pools_.emplace_back(space, spaces[space].base, spaces[space].bytes);
    else
      pools_.emplace_back();
}

// Blocks.

bool Residency::allocate(TileId tile, SpaceId space) {
  if (replicas_.has_memory(tile, space)) return true;
  if (space == host_space && replicas_.bytes(tile) == 0) return true;
  return pools_[space].allocate(replicas_, tile, space == host_space ? node_near(tile) : any_node);
}

/// The host's node near the device that has the content, which a buffer for it is filled from.
int Residency::node_near(TileId tile) const {
  if (!spill_.nodes().are_several()) return any_node;
  const Directory& directory = replicas_.directory();
  const SpaceId owner = directory.owner(tile);
  if (owner != no_space) return near_[owner];
  for (SpaceId space = 1; space < replicas_.spaces(); ++space)
    if (directory.valid(tile, space)) return near_[space];
  return any_node;
}

void Residency::release(TileId tile, SpaceId space) {
  if (space != host_space) listener_.departed(tile, space);
  Directory& directory = replicas_.directory();
  if (directory.valid(tile, space)) directory.dropped(tile, space);
  if (space != host_space)
    listener_.freed(space, replicas_.at(tile, space).block, replicas_.block_bytes(tile, space));
  pools_[space].deallocate(replicas_, tile);
}

/// Of a replica without content; true if it has no block now.
bool Residency::release_if_unused(TileId tile, SpaceId space) {
  if (!replicas_.has_block(tile, space)) return true;
  if (replicas_.directory().valid(tile, space) || !replicas_.idle(tile, space)) return false;
  release(tile, space);
  return true;
}

/// Of a replica that nobody uses now and that isn't the only one.
bool Residency::release_if_held(TileId tile, SpaceId space) {
  if (!replicas_.has_block(tile, space) || !replicas_.idle(tile, space) ||
      replicas_.directory().dirty(tile, space))
    return false;
  release(tile, space);
  return true;
}

/// The same of a buffer that has passed its content on: it is kept for others while there is
/// plenty.
void Residency::release_if_passed(TileId tile) {
  if (replicas_.directory().home(tile) != host_space && buffers_are_scarce())
    release_if_held(tile, host_space);
}

// Candidates.

/// Whether what is dirty has a way out: from a device home, from the host's buffers to a home on a
/// device or to a file, from a file nowhere.
bool Residency::can_be_sent(TileId tile, SpaceId space) const {
  if (space == file_) return false;
  if (space != host_space) return true;
  const bool has_place = replicas_.directory().home(tile) != host_space || can_go_to_file(tile);
  return has_place && transfers_.confirmed(tile, space);
}

/// Those that may leave a space now, and are needed least: enough for a block of these bytes; none
/// if there aren't. Without `buffers`, those that need none on their way.
std::vector<TileId> Residency::choose_victims(std::size_t bytes, SpaceId space, bool buffers) {
  candidates_.clear();
  farthest_use_.set_positions_per_second(forecast_.positions_per_second(space));
  const Directory& directory = replicas_.directory();
  for (const TileId tile : pools_[space].residents()) {
    if (!replicas_.idle(tile, space)) continue;
    const bool is_dirty = directory.dirty(tile, space);
    if (is_dirty && !can_be_sent(tile, space)) continue;
    if (is_dirty && !buffers && needs_host(tile, space) && !replicas_.has_memory(tile, host_space))
      continue;
    candidates_.push_back(candidate(tile, space));
  }
  std::vector<TileId> victims(candidates_.size());
  victims.resize(pools_[space].choose(rule_, candidates_, bytes, victims));
  return victims;
}

Candidate Residency::candidate(TileId tile, SpaceId space) const {
  const Directory& directory = replicas_.directory();
  Candidate found;
  found.tile = tile;
  found.offset = pools_[space].offset(replicas_.at(tile, space));
  found.bytes = pools_[space].rounded(replicas_.block_bytes(tile, space));
  found.next_use = forecast_.next_use(tile, space);
  found.last_use = replicas_.at(tile, space).last_use;
  found.dirty = directory.dirty(tile, space);
  if (!found.dirty) return found;
  found.final = forecast_.is_final(tile);
  found.write_back_seconds = write_back_seconds(tile, space);
  return found;
}

/// By the links that it takes: home, or to the host and from there.
double Residency::write_back_seconds(TileId tile, SpaceId space) const {
  const SpaceId home = replicas_.directory().home(tile);
  const auto seconds = [&](SpaceId from, SpaceId to) {
    return transfers_.copy_seconds(tile, from, to);
  };
  if (space == host_space && home == host_space) return seconds(space, file_);
  if (space == host_space || !needs_host(tile, space)) return seconds(space, home);
  const double onward = home == host_space ? 0 : seconds(host_space, home);
  return seconds(space, host_space) + onward;
}

// Room.

bool Residency::allocate_all(std::span<const Need> needs, SpaceId space) {
  Directory& directory = replicas_.directory();
  // What some of them hold already is no room for the others.
  for (const Need& need : needs) directory.pin(need.tile, space);
  std::size_t missing = allocate_some(needs, space);
  while (missing > 0 && make_room(missing, space) == Awaits::nothing)
    missing = allocate_some(needs, space);
  for (const Need& need : needs) directory.unpin(need.tile, space);
  if (missing == 0) return true;
  for (const Need& need : needs) release_if_unused(need.tile, space);
  return false;
}

/// As many as there is room for; the bytes of the others.
std::size_t Residency::allocate_some(std::span<const Need> needs, SpaceId space) {
  std::size_t missing = 0;
  for (std::size_t i = 0; i < needs.size(); ++i) {
    const TileId tile = needs[i].tile;
    const bool is_new = std::ranges::count(needs.first(i), tile, &Need::tile) == 0;
    if (is_new && !allocate(tile, space))
      missing += pools_[space].rounded(replicas_.block_bytes(tile, space));
  }
  return missing;
}

Awaits Residency::make_room(std::size_t bytes, SpaceId space) {
  const std::size_t wanted = pools_[space].lacking(bytes);
  // What leaves already makes enough room when it has gone.
  const std::size_t leaving = transfers_.leaving_bytes(space);
  if (leaving >= wanted && leaving > 0) return Awaits::room;
  const Awaits awaited = evict_all(choose_victims(wanted, space, true), space);
  if (awaited != Awaits::buffer || space == host_space) return awaited;
  const std::vector<TileId> others = choose_victims(wanted, space, false);
  return others.empty() ? awaited : evict_all(others, space);
}

/// Done once all are gone, those that are dirty after they were written back.
Awaits Residency::evict_all(std::span<const TileId> victims, SpaceId space) {
  const auto is_dirty = [&](TileId tile) { return replicas_.directory().dirty(tile, space); };
  Awaits awaited = victims.empty() ? Awaits::room : Awaits::nothing;
  // The clean ones first, or what holds them on the host might leave its buffer to a dirty one. The
  // host's with the last of all (invariant 3).
  if (space != host_space || std::ranges::none_of(victims, is_dirty))
    for (const TileId tile : victims)
      if (!is_dirty(tile)) drop(tile, space);
  for (const TileId tile : victims) {
    if (!replicas_.has_block(tile, space) || !is_dirty(tile)) continue;
    if (!send_away(tile, space))
      awaited = Awaits::buffer;
    else if (awaited == Awaits::nothing)
      awaited = Awaits::room;
  }
  return awaited;
}

/// Evicts what is clean.
void Residency::drop(TileId tile, SpaceId space) {
  release(tile, space);
  listener_.evicted(tile, space);
}

/// Queues what brings a dirty tile out of a space; false if there is no room on its way.
bool Residency::send_away(TileId tile, SpaceId space) {
  if (space != host_space) return send_home(tile, Reason::evict);
  if (replicas_.directory().home(tile) == host_space) return write_to_file(tile);
  return write_back(tile, Reason::evict);
}

bool Residency::evict_before(TileId tile, SpaceId space, std::uint64_t position) {
  if (!replicas_.has_block(tile, space)) return true;
  if (!replicas_.idle(tile, space) || forecast_.next_use(tile, space) <= position) return false;
  if (replicas_.directory().dirty(tile, space)) {
    write_back(tile, Reason::evict);
    return false;
  }
  drop(tile, space);
  return true;
}

Awaits Residency::drain(SpaceId space) {
  const std::span<const TileId> residents = pools_[space].residents();
  Awaits awaited = Awaits::room;
  for (std::size_t i = residents.size(); i-- > 0;) {
    const TileId tile = residents[i];
    if (!replicas_.idle(tile, space)) continue;
    if (replicas_.directory().dirty(tile, space)) {
      if (!send_home(tile, Reason::evict)) awaited = Awaits::buffer;
      continue;
    }
    drop(tile, space);
  }
  return pools_[space].residents().empty() ? Awaits::nothing : awaited;
}

bool Residency::quiet(SpaceId space) const noexcept {
  return std::ranges::all_of(pools_[space].residents(),
                             [&](TileId tile) { return replicas_.idle(tile, space); });
}

bool Residency::can_go_to_file(TileId tile) const {
  return file_ != no_space && !replicas_.at_home(tile, host_space) && replicas_.bytes(tile) > 0;
}

/// Queues a copy from a buffer of the host to the file; false if that is full.
bool Residency::write_to_file(TileId tile) {
  const Need need{tile, Access::write};
  if (!allocate_all({&need, 1}, file_)) return false;
  transfers_.queue(tile, host_space, file_, Reason::evict);
  return true;
}

bool Residency::needs_host(TileId tile, SpaceId owner) const {
  const SpaceId home = replicas_.directory().home(tile);
  return home == host_space || !transfers_.joined(owner, home);
}

// Write-backs.

bool Residency::write_back(TileId tile, Reason reason) {
  const Directory& directory = replicas_.directory();
  SpaceId owner = directory.owner(tile);
  const SpaceId home = directory.home(tile);
  if (owner == no_space) return true;
  if (transfers_.probing(owner) || transfers_.probing(home)) return true;
  if (needs_host(tile, owner)) {
    if (!allocate(tile, host_space)) return false;
    if (!directory.valid(tile, host_space))
      transfers_.queue(tile, transfers_.quickest_to_host(tile, owner), host_space, reason);
    owner = host_space;
  }
  if (home != host_space) transfers_.queue(tile, owner, home, reason);
  return true;
}

bool Residency::send_home(TileId tile, Reason reason) {
  if (write_back(tile, reason)) return true;
  const Need need{tile, Access::read};
  return allocate_all({&need, 1}, host_space) && write_back(tile, reason);
}

bool Residency::has_plenty(SpaceId space) const noexcept {
  return pools_[space].free_bytes() > pools_[space].capacity() / 2;
}

void Residency::write_final(TileId tile) {
  finals_.push_back(tile);
  write_finals();
}

/// Of what was put off. What is home or has changed since is somebody else's.
bool Residency::is_due_home(TileId tile) const {
  const SpaceId owner = replicas_.directory().owner(tile);
  return owner != no_space && forecast_.is_final(tile) && transfers_.confirmed(tile, owner);
}

/// Of the first, those whose quickest way has room.
void Residency::write_finals() {
  constexpr std::ptrdiff_t most = 32;
  const Directory& directory = replicas_.directory();
  const auto goes = [&](TileId tile) {
    if (!is_due_home(tile)) return true;
    const SpaceId owner = directory.owner(tile);
    const bool may_wait = needs_host(tile, owner) && !directory.valid(tile, host_space) &&
                          !transfers_.probing(owner) && has_plenty(owner);
    // Even if its own link is free: that may be the slowest, and would always be busy then.
    const auto goes_by_another = [&] {
      return relay_final(tile, owner) || transfers_.arrives_on_quicker_way(tile, owner);
    };
    const auto has_token = [&] {
      return transfers_.has_token(transfers_.quickest_to_host(tile, owner), host_space);
    };
    if (may_wait && (goes_by_another() || !has_token())) return false;
    write_back(tile, Reason::final);
    return true;
  };
  const auto end = finals_.begin() + std::min(most, std::ssize(finals_));
  finals_.erase(std::remove_if(finals_.begin(), end, goes), end);
}

/// To a device whose link brings it home sooner than the owner's would; false if there is none.
bool Residency::relay_final(TileId tile, SpaceId owner) {
  const SpaceId via = transfers_.relay_for(tile, owner, host_space);
  if (via == no_space || !has_plenty(via) || !allocate(tile, via)) return false;
  transfers_.queue(tile, owner, via, Reason::prefetch);
  return true;
}

void Residency::clean_ahead(SpaceId space) {
  const Pool& pool = pools_[space];
  if (space == file_ || !pool.has_memory() || has_plenty(space)) return;
  if (!transfers_.has_token(space, host_space)) return;
  const Directory& directory = replicas_.directory();
  for (const TileId tile : pool.residents()) {
    if (directory.owner(tile) != space || directory.pins(tile, space) > 0) continue;
    if (!transfers_.confirmed(tile, space) || forecast_.next_use(tile, space) != no_next_use)
      continue;
    write_back(tile, Reason::evict);
    return;
  }
}

// What becomes of replicas.

void Residency::evict(TileId tile) {
  for_each_space(replicas_.blocks(tile), [&](SpaceId space) {
    if (space != host_space && release_if_held(tile, space)) listener_.evicted(tile, space);
  });
}

void Residency::discard(TileId tile) {
  replicas_.directory().lost(tile);
  for_each_space(replicas_.blocks(tile), [&](SpaceId space) { release_if_unused(tile, space); });
}

void Residency::give_home(TileId tile) {
  const SpaceId home = replicas_.directory().home(tile);
  replicas_.directory().write_issued(tile, home);
  replicas_.set_unconfirmed(tile, home, false);
  overwritten(tile, home);
}

void Residency::remove(TileId tile) {
  replicas_.directory().lost(tile);  // a replica that is dirty may go too
  for_each_space(replicas_.blocks(tile), [&](SpaceId space) { release(tile, space); });
  replicas_.remove(tile);
}

void Residency::unpin(TileId tile, SpaceId space) {
  replicas_.directory().unpin(tile, space);
  release_if_unused(tile, space);
  if (space == host_space) release_if_passed(tile);
}

void Residency::overwritten(TileId tile, SpaceId space) {
  for_each_space(replicas_.blocks(tile), [&](SpaceId other) {
    if (other != space) release_if_unused(tile, other);
  });
}

void Residency::copy_ended(const Transfer& transfer) {
  const auto& [tile, from, to, reason, error] = transfer;
  release_if_unused(tile, from);
  release_if_unused(tile, to);
  if (from == host_space) release_if_passed(tile);
  const bool moves = reason == Reason::evict && to == host_space &&
                     replicas_.has_block(tile, host_space) && buffers_are_scarce();
  if (moves && release_if_held(tile, from)) listener_.evicted(tile, from);
  // A way that failed isn't tried again.
  if (error && to != host_space && std::erase(finals_, tile) > 0 && is_due_home(tile))
    write_back(tile, Reason::final);
  if (!finals_.empty()) write_finals();
}

void Residency::validate() const {
  for (const Pool& pool : pools_) pool.validate(replicas_);
}

}  // namespace quadriga
