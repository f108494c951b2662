// SPDX-License-Identifier: BSD-3-Clause
// src/memory/write_backs.cpp: copies home, and what they take.
#include "memory/write_backs.h"

namespace quadriga {

bool WriteBacks::write_back(TileId tile, Reason reason) {
  const Directory& directory = replicas_.directory();
  SpaceId owner = directory.owner(tile);
  const SpaceId home = directory.home(tile);
  if (owner == no_space) return true;
  if (transfers_.probing(owner) || transfers_.probing(home)) return true;
  if (needs_host(tile, owner)) {
    if (!residency_.allocate(tile, host_space)) return false;
    if (!directory.valid(tile, host_space))
      transfers_.queue(tile, transfers_.quickest_to_host(tile, owner), host_space, reason);
    owner = host_space;
  }
  if (home != host_space) transfers_.queue(tile, owner, home, reason);
  return true;
}

void WriteBacks::clean_ahead(SpaceId space) {
  const Pool& pool = residency_.pool(space);
  if (space == residency_.file() || !pool.has_memory() || residency_.has_plenty(space)) return;
  if (!transfers_.has_token(space, host_space)) return;
  residency_.catch_up(forecast_);
  TileId first = no_tile;
  residency_.leaving(space).for_marked([&](TileId tile) {
    using Answer = Residents::Answer;
    const Directory& directory = replicas_.directory();
    if (directory.owner(tile) != space || forecast_.next_use(tile, space) != no_next_use)
      return Answer::drop;
    if (directory.pins(tile, space) > 0 || !transfers_.confirmed(tile, space)) return Answer::keep;
    first = tile;
    return Answer::take;
  });
  if (first != no_tile) write_back(first, Reason::evict);
}

bool WriteBacks::needs_host(TileId tile, SpaceId owner) const {
  const SpaceId home = replicas_.directory().home(tile);
  return home == host_space || !transfers_.joined(owner, home);
}

bool WriteBacks::can_be_sent(TileId tile, SpaceId space) const {
  if (space == residency_.file()) return false;
  if (space != host_space) return true;
  const bool has_place = replicas_.directory().home(tile) != host_space || can_go_to_file(tile);
  return has_place && transfers_.confirmed(tile, space);
}

bool WriteBacks::can_go_to_file(TileId tile) const {
  return residency_.file_takes() && !replicas_.at_home(tile, host_space) &&
         replicas_.bytes(tile) > 0;
}

double WriteBacks::seconds(TileId tile, SpaceId space) const {
  const SpaceId home = replicas_.directory().home(tile);
  const auto by_link = [&](SpaceId from, SpaceId to) {
    return transfers_.copy_seconds(tile, from, to);
  };
  if (space == host_space && home == host_space)
    return residency_.file() == no_space ? 0 : by_link(space, residency_.file());
  if (space == host_space || !needs_host(tile, space)) return by_link(space, home);
  const double onward = home == host_space ? 0 : by_link(host_space, home);
  return by_link(space, host_space) + onward;
}

}  // namespace quadriga
