// SPDX-License-Identifier: BSD-3-Clause
// src/memory/residency.cpp: victims, write-backs, and blocks that are released.
#include "memory/residency.h"

#include <algorithm>

namespace quadriga {

Residency::Residency(std::span<const SpaceResources> spaces, const MemoryOptions& options,
                     MemoryListener& listener, Replicas& replicas, Transfers& transfers)
    : listener_(listener),
      replicas_(replicas),
      transfers_(transfers),
      rule_(options.rule ? *options.rule : farthest_use_),
      spill_(options.spill_bytes, options.spill_file) {
  pools_.reserve(spaces.size());
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
  return pools_[space].allocate(replicas_, tile);
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

/// Replicas that may leave a space now, but for these. A dirty one goes to its home if it leaves
/// the host, so it needs one elsewhere.
void Residency::collect_candidates(SpaceId space, std::span<const Need> needs) {
  candidates_.clear();
  farthest_use_.set_positions_per_second(listener_.positions_per_second(space));
  const Directory& directory = replicas_.directory();
  const auto has_to_stay = [&](TileId tile) {
    return space == host_space && directory.dirty(tile, space) &&
           ((directory.home(tile) == host_space && !can_go_to_file(tile)) ||
            !transfers_.confirmed(tile, space));
  };
  for (const TileId tile : pools_[space].residents()) {
    if (!replicas_.idle(tile, space) || has_to_stay(tile) ||
        std::ranges::count(needs, tile, &Need::tile) > 0)
      continue;
    candidates_.push_back(candidate(tile, space));
  }
}

Candidate Residency::candidate(TileId tile, SpaceId space) const {
  const Directory& directory = replicas_.directory();
  Candidate found;
  found.tile = tile;
  found.offset = pools_[space].offset(replicas_.at(tile, space));
  found.bytes = pools_[space].rounded(replicas_.block_bytes(tile, space));
  found.next_use = listener_.next_use(tile, space);
  found.last_use = replicas_.at(tile, space).last_use;
  found.dirty = directory.dirty(tile, space);
  if (!found.dirty) return found;
  found.final = listener_.is_final(tile);
  found.write_back_seconds = write_back_seconds(tile, space);
  return found;
}

/// By the links that it takes: home, or to the host and from there.
double Residency::write_back_seconds(TileId tile, SpaceId space) const {
  const SpaceId home = replicas_.directory().home(tile);
  const std::size_t bytes = replicas_.bytes(tile);
  if (space == host_space && home == host_space) return transfers_.seconds(space, file_, bytes);
  if (space == host_space || !needs_host(tile, space))
    return transfers_.seconds(space, home, bytes);
  const double onward = home == host_space ? 0 : transfers_.seconds(host_space, home, bytes);
  return transfers_.seconds(space, host_space, bytes) + onward;
}

// Room on devices.

Awaits Residency::make_room(std::size_t bytes, SpaceId space) {
  // What leaves already makes enough room when it has gone.
  const std::size_t leaving = transfers_.leaving_bytes(space);
  if (leaving >= bytes && leaving > 0) return Awaits::room;
  const auto choose = [&] {
    victims_.resize(candidates_.size());
    return std::span(victims_).first(pools_[space].choose(rule_, candidates_, bytes, victims_));
  };
  collect_candidates(space);
  std::span<const TileId> victims = choose();
  if (victims.empty()) return Awaits::room;
  const Awaits awaited = evict_all(victims, space);
  if (awaited != Awaits::buffer) return awaited;
  // Others may need none.
  collect_candidates(space);
  std::erase_if(candidates_, [&](const Candidate& each) {
    return each.dirty && needs_host(each.tile, space) &&
           !replicas_.has_memory(each.tile, host_space);
  });
  victims = choose();
  return victims.empty() ? awaited : evict_all(victims, space);
}

/// Done once all are gone, those that are dirty after they were written back.
Awaits Residency::evict_all(std::span<const TileId> victims, SpaceId space) {
  Awaits awaited = Awaits::nothing;
  // The clean ones first, or what holds them on the host might leave its buffer to a dirty one.
  for (const TileId tile : victims) {
    if (replicas_.directory().dirty(tile, space)) continue;
    release(tile, space);
    listener_.evicted(tile, space);
  }
  for (const TileId tile : victims) {
    if (!replicas_.has_block(tile, space)) continue;
    if (!send_home(tile, Reason::evict))
      awaited = Awaits::buffer;
    else if (awaited == Awaits::nothing)
      awaited = Awaits::room;
  }
  return awaited;
}

bool Residency::evict_before(TileId tile, SpaceId space, std::uint64_t position) {
  if (!replicas_.has_block(tile, space)) return true;
  if (!replicas_.idle(tile, space) || listener_.next_use(tile, space) <= position) return false;
  if (replicas_.directory().dirty(tile, space)) {
    write_back(tile, Reason::evict);
    return false;
  }
  release(tile, space);
  listener_.evicted(tile, space);
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
    release(tile, space);
    listener_.evicted(tile, space);
  }
  return pools_[space].residents().empty() ? Awaits::nothing : awaited;
}

bool Residency::quiet(SpaceId space) const noexcept {
  return std::ranges::all_of(pools_[space].residents(),
                             [&](TileId tile) { return replicas_.idle(tile, space); });
}

// Room on the host: made by tiles that a device holds as well, by those that are at home on one,
// which are written home first if they are dirty, and by those that a file has room for.

bool Residency::allocate_on_host(std::span<const Need> needs) {
  for (;;) {
    std::size_t missing = 0;
    for (std::size_t i = 0; i < needs.size(); ++i) {
      const TileId tile = needs[i].tile;
      const bool is_new = std::ranges::count(needs.first(i), tile, &Need::tile) == 0;
      if (is_new && !allocate(tile, host_space))
        missing += Spill::rounded(replicas_.block_bytes(tile, host_space));
    }
    if (missing == 0) return true;
    if (!make_host_room(missing, needs)) break;
  }
  for (const Need& need : needs) release_if_unused(need.tile, host_space);
  return false;
}

/// Frees buffers of so many bytes, of tiles other than these, or starts to. True if it has.
bool Residency::make_host_room(std::size_t needed, std::span<const Need> needs) {
  // Even where there seems to be room, a disk may be full.
  if (needed > spill_.room()) needed -= spill_.room();
  if (transfers_.leaving_bytes(host_space) >= needed) return false;
  collect_candidates(host_space, needs);
  const auto leaving = std::span(candidates_).first(choose_anywhere(rule_, candidates_, needed));
  // Room in the file is made from the same scratch.
  std::vector<TileId> dirty;
  for (const Candidate& each : leaving)
    if (each.dirty) dirty.push_back(each.tile);
  for (const TileId tile : dirty) {
    if (replicas_.directory().home(tile) == host_space)
      write_to_file(tile);
    else
      write_back(tile, Reason::evict);
  }
  if (leaving.empty() || !dirty.empty()) return false;
  for (const Candidate& each : leaving) release(each.tile, host_space);
  return true;
}

bool Residency::can_go_to_file(TileId tile) const {
  return file_ != no_space && !replicas_.at_home(tile, host_space) && replicas_.bytes(tile) > 0;
}

/// Queues a copy from a buffer of the host to the file; false if that is full.
bool Residency::write_to_file(TileId tile) {
  while (!allocate(tile, file_))
    if (!make_file_room(replicas_.block_bytes(tile, file_))) return false;
  transfers_.queue(tile, host_space, file_, Reason::evict);
  return true;
}

/// Of what others hold as well: the rest has nowhere to go.
bool Residency::make_file_room(std::size_t bytes) {
  collect_candidates(file_);
  std::erase_if(candidates_, [](const Candidate& each) { return each.dirty; });
  victims_.resize(candidates_.size());
  const std::size_t count = pools_[file_].choose(rule_, candidates_, bytes, victims_);
  for (const TileId tile : std::span(victims_).first(count)) release(tile, file_);
  return count > 0;
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
  return allocate_on_host({&need, 1}) && write_back(tile, reason);
}

bool Residency::has_plenty(SpaceId space) const noexcept {
  return pools_[space].free_bytes() > pools_[space].capacity() / 2;
}

void Residency::write_final(TileId tile) {
  finals_.push_back(tile);
  write_finals();
}

/// Of the first, those whose quickest way has room. What is home or has changed since is somebody
/// else's.
void Residency::write_finals() {
  constexpr std::ptrdiff_t most = 32;
  const Directory& directory = replicas_.directory();
  const auto goes = [&](TileId tile) {
    const SpaceId owner = directory.owner(tile);
    if (owner == no_space || !listener_.is_final(tile)) return true;
    const bool waits = needs_host(tile, owner) && has_plenty(owner) &&
                       !transfers_.has_token(transfers_.quickest_to_host(tile, owner), host_space);
    if (!waits)
      write_back(tile, Reason::final);
    else
      relay_final(tile, owner);
    return !waits;
  };
  const auto end = finals_.begin() + std::min(most, std::ssize(finals_));
  finals_.erase(std::remove_if(finals_.begin(), end, goes), end);
}

/// To a device whose link brings it home sooner than the owner's would.
void Residency::relay_final(TileId tile, SpaceId owner) {
  const SpaceId via = transfers_.relay_for(tile, owner, host_space);
  if (via == no_space || !has_plenty(via) || !allocate(tile, via)) return;
  transfers_.queue(tile, owner, via, Reason::prefetch);
}

void Residency::clean_ahead(SpaceId space) {
  const Pool& pool = pools_[space];
  if (space == file_ || !pool.has_memory() || !transfers_.has_token(space, host_space)) return;
  if (has_plenty(space)) return;
  const Directory& directory = replicas_.directory();
  for (const TileId tile : pool.residents()) {
    if (directory.owner(tile) != space || directory.pins(tile, space) > 0) continue;
    if (!transfers_.confirmed(tile, space) || listener_.next_use(tile, space) != no_next_use)
      continue;
    write_back(tile, Reason::evict);
    return;
  }
}

// What becomes of replicas.

void Residency::evict(TileId tile) {
  for (SpaceId space = 1; space < replicas_.spaces(); ++space)
    if (release_if_held(tile, space)) listener_.evicted(tile, space);
}

void Residency::discard(TileId tile) {
  replicas_.directory().lost(tile);
  for (SpaceId space = 0; space < replicas_.spaces(); ++space) release_if_unused(tile, space);
}

void Residency::give_home(TileId tile) {
  const SpaceId home = replicas_.directory().home(tile);
  replicas_.directory().write_issued(tile, home);
  replicas_.at(tile, home).unconfirmed = false;
  overwritten(tile, home);
}

void Residency::remove(TileId tile) {
  replicas_.directory().lost(tile);  // a replica that is dirty may go too
  for (SpaceId space = 0; space < replicas_.spaces(); ++space)
    if (replicas_.has_block(tile, space)) release(tile, space);
  replicas_.remove(tile);
}

void Residency::unpin(TileId tile, SpaceId space) {
  replicas_.directory().unpin(tile, space);
  release_if_unused(tile, space);
  if (space == host_space) release_if_passed(tile);
}

void Residency::overwritten(TileId tile, SpaceId space) {
  for (SpaceId other = 0; other < replicas_.spaces(); ++other)
    if (other != space) release_if_unused(tile, other);
}

void Residency::copy_ended(const Transfer& transfer) {
  const auto& [tile, from, to, reason, error] = transfer;
  release_if_unused(tile, from);
  release_if_unused(tile, to);
  if (from == host_space) release_if_passed(tile);
  const bool moves = reason == Reason::evict && to == host_space &&
                     replicas_.has_block(tile, host_space) && buffers_are_scarce();
  if (moves && release_if_held(tile, from)) listener_.evicted(tile, from);
  if (!finals_.empty()) write_finals();
}

void Residency::validate() const {
  for (const Pool& pool : pools_) pool.validate(replicas_);
}

}  // namespace quadriga
