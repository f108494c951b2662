// SPDX-License-Identifier: BSD-3-Clause
// src/memory/victims.cpp: the candidates, and what is known of each.
#include "memory/victims.h"

#include <quadriga/error.h>

#include <algorithm>

namespace quadriga {

std::vector<TileId> Victims::choose(std::size_t bytes, SpaceId space, bool buffers) {
  return choose(bytes, space, buffers ? Who::all : Who::without_buffer);
}

std::vector<TileId> Victims::choose_clean(std::size_t bytes, SpaceId space) {
  return choose(bytes, space, Who::clean);
}

std::vector<Candidate> Victims::ranked(std::span<const TileId> tiles, SpaceId space) {
  farthest_use_.set_positions_per_second(forecast_.positions_per_second(space));
  std::vector<Candidate> found;
  for (const TileId tile : tiles) found.push_back(candidate(tile, space));
  best_victims(rule_, found, found.size());
  return found;
}

std::vector<TileId> Victims::choose(std::size_t bytes, SpaceId space, Who who) {
  farthest_use_.set_positions_per_second(forecast_.positions_per_second(space));
  const std::optional<Arena>& arena = residency_.pool(space).arena();
  if (!arena) return choose_several(bytes, space, who);
  bytes = std::max<std::size_t>(bytes, 1);
  const Candidate best = best_of(bytes, space, who);
  if (best.tile == no_tile) return {};
  if (makes_room(*arena, best, arena->rounded(bytes))) return {best.tile};
  return choose_several(bytes, space, who);
}

Candidate Victims::best_of(std::size_t bytes, SpaceId space, Who who) {
  residency_.catch_up(forecast_);
  BestVictim best(rule_, residency_.pool(space).rounded(bytes));
  const auto look = [&](TileId tile) {
    if (may_leave(tile, space, who)) best.look(candidate(tile, space));
    return best.bound();
  };
  residency_.leaving(space).search([&](TileId tile) { return bound(tile, space); }, look);
  return best.candidate();
}

std::vector<TileId> Victims::choose_several(std::size_t bytes, SpaceId space, Who who) {
  candidates_.clear();
  for (const TileId tile : residency_.pool(space).residents())
    if (may_leave(tile, space, who)) candidates_.push_back(candidate(tile, space));
  std::vector<TileId> victims(candidates_.size());
  victims.resize(residency_.pool(space).choose(rule_, candidates_, bytes, victims));
  return victims;
}

bool Victims::may_leave(TileId tile, SpaceId space, Who who) const {
  if (!replicas_.idle(tile, space)) return false;
  if (!replicas_.directory().dirty(tile, space)) return true;
  if (who == Who::clean || !write_backs_.can_be_sent(tile, space)) return false;
  return who == Who::all || !write_backs_.needs_host(tile, space) ||
         replicas_.has_memory(tile, host_space);
}

Candidate Victims::candidate(TileId tile, SpaceId space) const {
  const Directory& directory = replicas_.directory();
  Candidate found;
  found.tile = tile;
  found.offset = residency_.pool(space).offset(replicas_.at(tile, space));
  found.bytes = residency_.pool(space).rounded(replicas_.block_bytes(tile, space));
  found.next_use = forecast_.next_use(tile, space);
  found.last_use = replicas_.at(tile, space).last_use;
  found.dirty = directory.dirty(tile, space);
  if (!found.dirty) return found;
  found.final = forecast_.is_final(tile);
  found.write_back_seconds = write_backs_.seconds(tile, space);
  return found;
}

void Victims::validate() {
  residency_.catch_up(forecast_);
  const Directory& directory = replicas_.directory();
  for (SpaceId space = 0; space < replicas_.spaces(); ++space)
    for (const TileId tile : residency_.pool(space).residents()) {
      const Residents& residents = residency_.leaving(space);
      const bool is_dirty = directory.owner(tile) == space;
      const bool is_unused = forecast_.next_use(tile, space) == no_next_use;
      if (is_dirty && is_unused && !residents.is_marked(tile))
        fail(Errc::internal, "a tile that may be written back ahead isn't known");
      if (!residents.covers(tile, bound(tile, space)))
        fail(Errc::internal, "a tile may leave better than is known");
    }
}

}  // namespace quadriga
