// SPDX-License-Identifier: BSD-3-Clause
// src/graph/driver_prefetch.cpp: fetching what placed tasks will need while others run.
#include "graph/driver.h"

namespace quadriga {

/// One copy at a time, or as many short ones as keep the link busy: what is fetched ahead must not
/// stand in the way of what is needed next. Copies from peers, some of which wait for kernels
/// there, leave the host's link alone.
bool Driver::may_prefetch(const DeviceState& device) const {
  constexpr double ahead_seconds = 1e-3;
  return memory_->incoming_from_host(device.space) == 0 ||
         memory_->host_seconds(device.space) <= ahead_seconds;
}

void Driver::prefetch(DeviceState& device) {
  // Who waits for room has the first claim to what becomes free.
  if (device.head) return;
  bool followed = false;
  while (may_prefetch(device)) {
    if (device.fetches.empty()) {
      if (followed) return;
      followed = true;
      look_ahead(device);
      if (device.fetches.empty()) return;
    }
    const Fetch& fetch = device.fetches.front();
    const Directory& directory = memory_->directory();
    if (!plan_.uses(fetch.tile).datum || directory.valid(fetch.tile, device.space) ||
        !directory.written(fetch.tile)) {
      device.fetches.pop_front();
      continue;
    }
    const Outcome outcome =
        memory_->prefetch(fetch.tile, device.space, fetch.position, fetch.victims);
    if (outcome == Outcome::no_room) {
      // Its victims are needed until then, or the plan has changed: that shows when others end.
      if (!followed) device.fetches.clear();
      if (followed) return;
      continue;
    }
    if (outcome == Outcome::done)
      recorder_.mark(device.streams.front().lane, Mark::prefetch, fetch.tile, 0, now());
    device.fetches.pop_front();
  }
}

/// A device's memory as the lookahead sees it.
class Driver::Sight {
 public:
  Sight(const Memory& memory, SpaceId space, std::vector<Resident>& residents)
      : memory_(memory), space_(space), residents_(residents) {}
  bool has(TileId tile) const {
    return memory_.resident(tile, space_) ||
           (memory_.at_home(tile, space_) && memory_.directory().valid(tile, space_));
  }
  std::size_t bytes(TileId tile) const {
    return memory_.at_home(tile, space_) ? 0 : memory_.rounded(tile, space_);
  }
  std::size_t free_bytes() const { return memory_.free_bytes(space_); }
  std::uint64_t departures() const { return memory_.departures(space_); }
  std::span<const Resident> residents() const {
    residents_.clear();
    for (const TileId tile : memory_.residents(space_)) residents_.push_back({tile, bytes(tile)});
    return residents_;
  }

 private:
  const Memory& memory_;
  SpaceId space_;
  std::vector<Resident>& residents_;
};

void Driver::look_ahead(DeviceState& device) {
  device.lookahead->follow(Sight(*memory_, device.space, residents_), device.fetches);
}

}  // namespace quadriga
