// SPDX-License-Identifier: BSD-3-Clause
// src/memory/final_writes.cpp: which of what was put off goes now, and by which device.
#include "memory/final_writes.h"

#include <algorithm>

namespace quadriga {

void FinalWrites::write(TileId tile) {
  finals_.push_back(tile);
  write_due();
}

/// Of what was put off. What is home or has changed since is somebody else's.
bool FinalWrites::is_due_home(TileId tile) const {
  const SpaceId owner = replicas_.directory().owner(tile);
  return owner != no_space && forecast_.is_final(tile) && transfers_.confirmed(tile, owner);
}

/// Of the first, those whose quickest way has room.
void FinalWrites::write_due() {
  constexpr std::ptrdiff_t most = 32;
  const auto end = finals_.begin() + std::min(most, std::ssize(finals_));
  const auto leaves = [&](TileId tile) { return goes(tile); };
  finals_.erase(std::remove_if(finals_.begin(), end, leaves), end);
}

/// Whether it is no longer put off: it was queued, or isn't due.
bool FinalWrites::goes(TileId tile) {
  if (!is_due_home(tile)) return true;
  const Directory& directory = replicas_.directory();
  const SpaceId owner = directory.owner(tile);
  const bool may_wait = write_backs_.needs_host(tile, owner) &&
                        !directory.valid(tile, host_space) && !transfers_.probing(owner) &&
                        residency_.has_plenty(owner);
  // Even if its own link is free: that may be the slowest, and would always be busy then.
  const auto goes_by_another = [&] {
    return relay(tile, owner) || transfers_.arrives_on_quicker_way(tile, owner);
  };
  const auto has_token = [&] {
    return transfers_.has_token(transfers_.quickest_to_host(tile, owner), host_space);
  };
  if (may_wait && (goes_by_another() || !has_token())) return false;
  write_backs_.write_back(tile, Reason::final);
  return true;
}

/// To a device whose link brings it home sooner than the owner's would; false if there is none.
bool FinalWrites::relay(TileId tile, SpaceId owner) {
  const SpaceId via = transfers_.relay_for(tile, owner, host_space);
  if (via == no_space || !residency_.has_plenty(via) || !residency_.allocate(tile, via))
    return false;
  transfers_.queue(tile, owner, via, Reason::prefetch);
  return true;
}

void FinalWrites::copy_ended(const Transfer& transfer) {
  const TileId tile = transfer.tile;
  // A way that failed isn't tried again.
  if (transfer.error && transfer.to != host_space && std::erase(finals_, tile) > 0 &&
      is_due_home(tile))
    write_backs_.write_back(tile, Reason::final);
  if (!finals_.empty()) write_due();
}

}  // namespace quadriga
