// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/device_turns.cpp: one task of a device, the next device, and a way out where none
// finds room.
#include "schedule/device_turns.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "schedule/cache_hints.h"

namespace quadriga {
namespace {

bool lacks_buffer(const DeviceState& device) noexcept { return device.head && device.lacks_buffer; }

}  // namespace

void DeviceTurns::begin() {
  // An idle device looks around each time: others may have got what it can steal.
  for (DeviceState& device : state_.devices)
    if (device.awaits_source || device.lacks_buffer || device.issued == 0) device.touched = true;
  turns_.begin();
}

bool DeviceTurns::step() {
  look_at_claim();
  return turns_.step([&](std::size_t device) { return issue_one(state_.devices[device]); },
                     [&] { return parts_.pulls.place_oldest(); },
                     [&](std::size_t device) { return fill(state_.devices[device]); });
}

/// Invariant 1.
bool DeviceTurns::issue_one(DeviceState& device) {
  if (device.lost || gives_way(device)) return false;
  if (std::exchange(device.touched, false)) device.open = true;
  if (!device.open) return false;
  parts_.pulls.pull(device);
  device.looked = true;
  device.awaits_source = false;
  device.open = Launcher::wants_more(device) && issue_next(device);
  return device.open;
}

/// Issues the best ready task; false if none could be.
bool DeviceTurns::issue_next(DeviceState& device) {
  if (PlannedTask* const head = device.drop_head()) {
    const bool is_done = try_issue(device, *head);
    if (is_done || device.head) return is_done;
  }
  if (device.claimed) return try_issue(device, parts_.gangs.next(device.id));
  if (order_.is_chosen()) return issue_chosen(device);
  // Tasks whose content is still to come home from elsewhere let others pass, and those that would
  // stand behind enough of their like.
  constexpr int most = 16;
  int looked = 0;
  const PlanSet& ready = state_.plan.on(device.id).ready();
  for (auto next = ready.begin(); next != ready.end() && looked < most; ++looked) {
    if (looked == 0) fetch_ahead(device, next, ready.end());
    PlannedTask& planned = **next++;
    if (Launcher::would_queue(device, planned)) continue;
    const bool is_done = try_issue(device, planned);
    if (is_done || device.is_closed()) return is_done;
  }
  return false;
}

/// What is to be issued next, and of one of them, of which the accesses have come, the tiles.
void DeviceTurns::fetch_ahead(const DeviceState& device, PlanSet::const_iterator next,
                              const PlanSet::const_iterator& end) const {
  constexpr int ahead = 2;
  fetch_tasks(next, end);
  for (int step = 0; step < ahead && next != end; ++step) ++next;
  if (next == end) return;
  for (const PlannedAccess& access : (*next)->accesses) {
    __builtin_prefetch(access.datum);
    __builtin_prefetch(&access.datum->poisoned, 1);
    __builtin_prefetch(&access.datum->tile);
    state_.plan.uses().fetch(access.tile, device.id);
    state_.memory->replicas().fetch(access.tile, device.space);
  }
}

/// The same in the order that the policy chooses.
bool DeviceTurns::issue_chosen(DeviceState& device) {
  order_.begin(device);
  while (PlannedTask* const planned = order_.next()) {
    if (Launcher::would_queue(device, *planned)) continue;
    const bool is_done = try_issue(device, *planned);
    if (is_done || device.is_closed()) return is_done;
  }
  return false;
}

/// True if the task was issued or ended. Else it became the head, or others may pass it.
bool DeviceTurns::try_issue(DeviceState& device, PlannedTask& planned) {
  const Verdict verdict =
      planned.gang ? parts_.gangs.issue(planned) : parts_.launcher.issue(device, planned);
  device.lacks_buffer = verdict.awaits == Awaits::buffer;
  switch (verdict.kind) {
    case Verdict::Kind::issued:
      return true;
    case Verdict::Kind::waits:
      if (verdict.awaits == Awaits::source)
        device.awaits_source = true;
      else if (!planned.gang)
        device.make_head(planned);
      return false;
    case Verdict::Kind::skipped:
      planned.enter(TaskState::skipped);
      state_.listener.ran(planned, {});
      break;
    case Verdict::Kind::failed:
      break;
  }
  parts_.endings.end(planned, verdict.error);
  return true;
}

/// What a device that found nothing to issue steals, fetches ahead and cleans; true as long as it
/// issues.
bool DeviceTurns::fill(DeviceState& device) {
  if (!device.looked || device.lost || claimant_) return false;
  const auto can_steal = [&] {
    return Launcher::wants_more(device) && !device.is_closed() &&
           state_.plan.on(device.id).ready().empty() && parts_.placement.steal(device);
  };
  if (can_steal() && issue_next(device)) return true;
  if (device.space != host_space) {
    parts_.prefetch.fetch(device);
    state_.memory->write_backs().clean_ahead(device.space);
  }
  device.looked = false;
  return false;
}

Error DeviceTurns::no_buffer() const {
  return {Errc::too_large,
          fmt::format("tiles that aren't at home on the host have no room there: {}",
                      state_.memory->residency().refusal())};
}

bool DeviceTurns::is_stuck() const noexcept {
  return claimant_ || std::ranges::any_of(state_.devices, [](const DeviceState& device) {
           return lacks_buffer(device) || device.claimed;
         });
}

/// What isn't bound to the host runs on a device instead.
bool DeviceTurns::resolve_standstill() {
  if (look_at_claim()) return true;
  if (claimant_) {
    if (!hand_over(*claimant_)) end_claim();
    return true;
  }
  for (DeviceState& device : state_.devices)
    if (lacks_buffer(device) && device.space == host_space && leave_host(*device.head)) return true;
  for (DeviceState& device : state_.devices)
    if (hand_over(device)) return true;
  return state_.detached == 0 && refuse_one();
}

/// Invariant 5.
bool DeviceTurns::refuse_one() {
  const auto found = std::ranges::find_if(state_.devices, lacks_buffer);
  if (found == state_.devices.end())
    return parts_.gangs.fail_oldest(std::make_exception_ptr(no_buffer()));
  found->lacks_buffer = false;
  parts_.endings.end(*found->head, std::make_exception_ptr(no_buffer()));
  return true;
}

/// Invariant 4: has tiles leave for the head of a device, if it waits for that.
bool DeviceTurns::hand_over(DeviceState& device) {
  if (!lacks_buffer(device) || !parts_.launcher.hand_over(device, *device.head)) return false;
  claimant_ = &device;
  claimed_ = device.head;
  device.touched = true;
  turns_.set_more(true);
  return true;
}

/// Invariant 4a; true if the claim has ended.
bool DeviceTurns::look_at_claim() {
  if (!claimant_ || (!claimant_->lost && claimant_->head == claimed_)) return false;
  end_claim();
  return true;
}

/// Whoever gave way looks again.
void DeviceTurns::end_claim() {
  claimant_ = nullptr;
  claimed_ = nullptr;
  state_.touch_all();
  turns_.set_more(true);
}

/// Once only: it isn't stolen back.
bool DeviceTurns::leave_host(PlannedTask& planned) {
  const auto found = std::ranges::find_if(state_.devices, [&](const DeviceState& device) {
    return device.space != host_space &&
           parts_.placement.feasibility().can_run(device, *planned.task);
  });
  if (found == state_.devices.end() || planned.task->device != no_device || planned.task->side())
    return false;
  state_.devices[planned.device].drop_head();
  parts_.placement.move(planned, found->id);
  planned.left_host = true;
  found->touched = true;
  turns_.set_more(true);
  return true;
}

}  // namespace quadriga
