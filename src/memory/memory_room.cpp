// SPDX-License-Identifier: BSD-3-Clause
// src/memory/memory_room.cpp: making room: victims, write-backs ahead of need, devices that are
// gone.
#include <quadriga/error.h>

#include <algorithm>

#include "memory/memory.h"

namespace quadriga {

/// Replicas that may leave a space now.
void Memory::collect_candidates(SpaceId space) {
  candidates_.clear();
  const Space& there = spaces_[space];
  for (const TileId tile : there.residents) {
    if (directory_.pins(tile, space) > 0 || directory_.in_flight(tile, space)) continue;
    candidates_.push_back(candidate(tile, space, host_space));
    candidates_.back().offset = static_cast<std::size_t>(place(tile, space).block - there.base);
  }
}

Candidate Memory::candidate(TileId tile, SpaceId space, SpaceId to) {
  Candidate found;
  found.tile = tile;
  found.bytes = rounded(tile, space);
  found.next_use = listener_.next_use(tile, space);
  found.last_use = place(tile, space).last_use;
  found.dirty = directory_.dirty(tile, space);
  if (found.dirty)
    found.write_back_seconds = times_.seconds(space, to, static_cast<double>(bytes(tile)));
  return found;
}

Outcome Memory::make_room(std::size_t needed, SpaceId space) {
  Space& there = spaces_[space];
  // What leaves already makes enough room when it has gone.
  if (there.leaving_bytes >= needed && there.leaving_bytes > 0) return Outcome::no_room;
  collect_candidates(space);
  std::span<const TileId> victims = victims_for(needed, space);
  if (victims.empty()) return Outcome::no_room;
  const Outcome outcome = let_leave(victims, space);
  if (outcome != Outcome::no_buffer) return outcome;
  // Others may need none.
  collect_candidates(space);
  std::erase_if(candidates_, [&](const Candidate& each) {
    return each.dirty && needs_host(each.tile, space) && !has_memory(each.tile, host_space);
  });
  victims = victims_for(needed, space);
  return victims.empty() ? outcome : let_leave(victims, space);
}

std::span<const TileId> Memory::victims_for(std::size_t needed, SpaceId space) {
  const Arena& arena = *spaces_[space].arena;
  victims_.resize(candidates_.size());
  needed = arena.rounded(std::max<std::size_t>(needed, 1));
  return std::span(victims_).first(choose_victims(rule_, arena, candidates_, needed, victims_));
}

/// Done once all are gone, those that are dirty after they were written back.
Outcome Memory::let_leave(std::span<const TileId> victims, SpaceId space) {
  Outcome outcome = Outcome::done;
  // The clean ones first, or what holds them on the host might leave its buffer to a dirty one.
  for (const TileId tile : victims) {
    if (directory_.dirty(tile, space)) continue;
    give_up(tile, space);
    listener_.evicted(tile, space);
  }
  for (const TileId tile : victims) {
    if (!has_block(tile, space)) continue;
    if (!send_home(tile, Reason::evict))
      outcome = Outcome::no_buffer;
    else if (outcome == Outcome::done)
      outcome = Outcome::no_room;
  }
  return outcome;
}

void Memory::clean_ahead(SpaceId space) {
  Space& there = spaces_[space];
  if (!there.arena || !there.out.records.empty()) return;
  const std::size_t capacity = there.arena->capacity();
  if (capacity - there.arena->used() > capacity / 8) return;
  for (const TileId tile : there.residents) {
    if (directory_.owner(tile) != space || directory_.pins(tile, space) > 0) continue;
    if (place(tile, space).unconfirmed || listener_.next_use(tile, space) != no_next_use) continue;
    write_back(tile, Reason::evict);
    return;
  }
}

/// Gives up a replica that isn't needed before `position`; true if it is gone. A dirty one is
/// written back first.
bool Memory::leaves_before(TileId tile, SpaceId space, std::uint64_t position) {
  if (!has_block(tile, space)) return true;
  if (directory_.pins(tile, space) > 0 || directory_.in_flight(tile, space) ||
      listener_.next_use(tile, space) <= position)
    return false;
  if (directory_.dirty(tile, space)) {
    if (directory_.owner(tile) != no_space) write_back(tile, Reason::evict);
    return false;
  }
  give_up(tile, space);
  listener_.evicted(tile, space);
  return true;
}

bool Memory::busy(TileId tile) const noexcept {
  for (SpaceId space = 0; space < spaces_.size(); ++space)
    if (directory_.pins(tile, space) > 0 || directory_.in_flight(tile, space)) return true;
  return false;
}

void Memory::confirm(TileId tile) {
  for (SpaceId space = 0; space < spaces_.size(); ++space) place(tile, space).unconfirmed = false;
}

Outcome Memory::drain(SpaceId space) {
  Space& there = spaces_[space];
  Outcome outcome = Outcome::no_room;
  for (std::size_t i = there.residents.size(); i-- > 0;) {
    const TileId tile = there.residents[i];
    if (directory_.pins(tile, space) > 0 || directory_.in_flight(tile, space)) continue;
    if (directory_.dirty(tile, space)) {
      if (!send_home(tile, Reason::evict)) outcome = Outcome::no_buffer;
      continue;
    }
    give_up(tile, space);
    listener_.evicted(tile, space);
  }
  return there.residents.empty() ? Outcome::done : outcome;
}

bool Memory::quiet(SpaceId space) const noexcept {
  return std::ranges::none_of(spaces_[space].residents, [&](TileId tile) {
    return directory_.pins(tile, space) > 0 || directory_.in_flight(tile, space);
  });
}

void Memory::evict(TileId tile) {
  for (SpaceId space = 1; space < spaces_.size(); ++space)
    if (has_block(tile, space) && directory_.pins(tile, space) == 0 &&
        !directory_.in_flight(tile, space) && !directory_.dirty(tile, space)) {
      give_up(tile, space);
      listener_.evicted(tile, space);
    }
}

void Memory::probe(SpaceId space) {
  Space& there = spaces_[space];
  Copy copy;
  copy.from = space;
  copy.to = host_space;
  const Event event = instructions_.copy(there.out.id, copy);
  there.out.records.push_back(
      {event.ticket, no_tile, space, host_space, Reason::stage, {}, nullptr});
  ++there.probes;
  ++in_flight_;
}

void Memory::space_lost(SpaceId space, std::vector<TileId>& lost) {
  Space& there = spaces_[space];
  lost.resize(infos_.size());
  lost.resize(directory_.space_lost(space, lost));
  for (const TileId tile : there.residents) place(tile, space) = Place{};
  for (TileId tile = 0; tile < infos_.size(); ++tile)
    if (at_home(tile, space)) place(tile, space) = Place{};
  there.residents.clear();
  there.arena->clear();
}

void Memory::validate() const {
  directory_.validate();
  for (SpaceId space = 0; space < spaces_.size(); ++space) {
    const Space& there = spaces_[space];
    if (there.arena) there.arena->validate();
    for (const TileId tile : there.residents)
      if (!has_block(tile, space) || at_home(tile, space))
        fail(Errc::internal, "a resident tile has no block, or is at home where it has one");
  }
}

}  // namespace quadriga
