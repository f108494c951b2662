// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/prefetch.cpp: when the next fetch is ordered, and when foresight starts anew.
#include "schedule/prefetch.h"

namespace quadriga {

/// A device's memory as the lookahead sees it.
class Prefetch::View {
 public:
  View(const Memory& memory, SpaceId space, std::vector<Resident>& residents)
      : memory_(memory), space_(space), residents_(residents) {}
  bool has(TileId tile) const {
    return memory_.replicas().has_block(tile, space_) ||
           (memory_.replicas().at_home(tile, space_) && memory_.directory().valid(tile, space_));
  }
  std::size_t bytes(TileId tile) const {
    const Replicas& replicas = memory_.replicas();
    if (replicas.at_home(tile, space_)) return 0;
    return memory_.pool(space_).rounded(replicas.block_bytes(tile, space_));
  }
  std::size_t free_bytes() const { return memory_.pool(space_).free_bytes(); }
  std::span<const Resident> residents() const {
    residents_.clear();
    for (const TileId tile : memory_.pool(space_).residents())
      residents_.push_back({tile, bytes(tile)});
    return residents_;
  }

 private:
  const Memory& memory_;
  SpaceId space_;
  std::vector<Resident>& residents_;
};

Prefetch::Prefetch(ScheduleState& state, CheckedPolicy& policy) : state_(state), policy_(policy) {
  for (DeviceId device = 0; device < state.machine.devices.size(); ++device)
    foreseen_.emplace_back(Lookahead(state.plan, device), std::deque<Fetch>());
}

bool Prefetch::is_obsolete(const Fetch& fetch, const DeviceState& device) {
  const Directory& directory = state_.memory->directory();
  const PlannedAccess* const use = state_.plan.uses().first_use(fetch.tile, device.id);
  return !use || !state_.plan.uses().reads_present(*use) ||
         directory.valid(fetch.tile, device.space) || !directory.written(fetch.tile);
}

bool Prefetch::holds(const Fetch& fetch, const DeviceState& device) {
  const View view(*state_.memory, device.space, residents_);
  return foreseen_[device.id].lookahead.holds(view, fetch);
}

void Prefetch::look_ahead(const DeviceState& device) {
  Foreseen& foreseen = foreseen_[device.id];
  foreseen.lookahead.follow(View(*state_.memory, device.space, residents_), foreseen.fetches);
}

/// Which fetch is next; their number if the policy wants none now.
std::size_t Prefetch::choose(const DeviceState& device, const std::deque<Fetch>& fetches) {
  if (!policy_.traits().filters_prefetches) return 0;
  const Memory& memory = *state_.memory;
  candidates_.clear();
  for (const Fetch& fetch : fetches)
    candidates_.push_back(
        {.tile = fetch.tile,
         .bytes = memory.replicas().bytes(fetch.tile),
         .fetch_seconds = memory.transfers().fetch_seconds(fetch.tile, device.space),
         .victims = fetch.victims.size()});
  return policy_.prefetch(candidates_);
}

void Prefetch::fetch(DeviceState& device) {
  // Who waits for room has the first claim to what becomes free.
  if (device.is_closed()) return;
  std::deque<Fetch>& fetches = foreseen_[device.id].fetches;
  bool is_fresh = false;
  // Copies from peers, some of which wait for kernels there, leave the host's link alone.
  while (state_.memory->transfers().has_token(host_space, device.space)) {
    if (policy_.traits().filters_prefetches)
      std::erase_if(fetches, [&](const Fetch& each) { return is_obsolete(each, device); });
    if (fetches.empty()) {
      if (is_fresh || !foreseen_[device.id].lookahead.has_news()) return;
      is_fresh = true;
      look_ahead(device);
      if (fetches.empty()) return;
    }
    const std::size_t chosen = choose(device, fetches);
    if (chosen >= fetches.size()) return;
    const Fetch& next = fetches[chosen];
    const auto at = fetches.begin() + static_cast<std::ptrdiff_t>(chosen);
    if (is_obsolete(next, device)) {
      fetches.erase(at);
      continue;
    }
    const Outcome outcome =
        state_.memory->staging().prefetch(next.tile, device.space, next.position, next.victims);
    if (awaits(outcome, Awaits::room)) {
      // Its victims are needed until then, or the plan has changed: that shows when others end.
      if (is_fresh || holds(next, device)) return;
      fetches.clear();
      continue;
    }
    if (is_done(outcome)) state_.listener.marked(device.id, Mark::prefetch, next.tile, 0);
    fetches.erase(at);
  }
}

}  // namespace quadriga
