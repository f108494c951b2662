// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/gangs.cpp: who waits for whom, and what becomes of all when one can't run.
#include "schedule/gangs.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>

#include "schedule/recovery.h"

namespace quadriga {
namespace {

/// For those that could have started.
std::exception_ptr error_of_others(const std::exception_ptr& cause) {
  if (!cause) return nullptr;
  return std::make_exception_ptr(Error(
      is_device_lost(cause) ? Errc::device_lost : Errc::cancelled,
      fmt::format("another task that starts together with it can't run: {}", text_of(cause))));
}

}  // namespace

void Gangs::entered(PlannedTask& planned) {
  planned.gang = planned.task->gang();
  if (!planned.gang) return;
  State& gang = gangs_[planned.gang->id];
  gang.gang = planned.gang;
  gang.members.push_back({&planned, gang.others_error});
}

Gangs::Member& Gangs::member_of(State& gang, const PlannedTask& planned) {
  return *std::ranges::find(gang.members, &planned, &Member::task);
}

void Gangs::ready(PlannedTask& planned) {
  State& gang = gangs_.at(planned.gang->id);
  if (planned.state() == TaskState::placed) planned.enter(TaskState::gathering);
  const bool all_ready = gang.members.size() == gang.gang->size &&
                         std::ranges::all_of(gang.members, [](const Member& member) {
                           return member.task->state() == TaskState::gathering;
                         });
  if (all_ready || gang.failed) make_ready(gang);
}

void Gangs::make_ready(State& gang) {
  for (const Member& member : gang.members) {
    PlannedTask& task = *member.task;
    if (task.state() == TaskState::gathering) state_.plan.make_ready(task);
    if (task.is_among(ready_states)) state_.devices[task.device].touched = true;
  }
}

GangClaims::Devices Gangs::devices_of(const State& gang) {
  GangClaims::Devices devices = 0;
  for (const Member& member : gang.members)
    devices |= GangClaims::Devices{1} << member.task->device;
  return devices;
}

/// Who waits for room on one of its devices has the first claim to it.
bool Gangs::may_begin(const State& gang) const {
  return claims_.has_turn(gang.gang->id, devices_of(gang)) &&
         std::ranges::none_of(gang.members, [&](const Member& member) {
           return state_.devices[member.task->device].head;
         });
}

/// What one of them needs from there, while another waits for room, would fail again and again.
bool Gangs::is_device_in_doubt() const {
  return std::ranges::any_of(state_.devices, [&](const DeviceState& device) {
    return state_.memory->transfers().probing(device.space);
  });
}

Verdict Gangs::issue(const PlannedTask& planned) {
  State& gang = gangs_.at(planned.gang->id);
  if (gang.failed || !is_where_it_was_sent(gang))
    return {.kind = Verdict::Kind::failed, .error = member_of(gang, planned).error};
  Verdict verdict{Verdict::Kind::waits, Awaits::room};
  if (is_device_in_doubt()) verdict.awaits = Awaits::source;
  PlannedTask* culprit = nullptr;
  if (verdict.awaits == Awaits::room && may_begin(gang)) {
    std::vector<PlannedTask*> tasks;
    for (const Member& member : gang.members) tasks.push_back(member.task);
    verdict = launcher_.issue_together(tasks, culprit);
  }
  if (verdict.kind == Verdict::Kind::issued) {
    drop_claims(gang);
  } else if (verdict.kind != Verdict::Kind::waits) {
    fail(gang, culprit, verdict.error);
    verdict.error = member_of(gang, planned).error;
  } else if (verdict.awaits != Awaits::source) {
    claim(gang);
  }
  return verdict;
}

/// Others run elsewhere if their device can't run them; these are submitted for one.
bool Gangs::is_where_it_was_sent(State& gang) {
  const auto astray = std::ranges::find_if(gang.members, [](const Member& member) {
    return member.task->device != member.task->task->device;
  });
  if (astray == gang.members.end()) return true;
  const DeviceState& device = state_.devices[astray->task->task->device];
  fail(gang, astray->task,
       device.lost ? device.loss
                   : std::make_exception_ptr(Error(
                         Errc::unavailable,
                         fmt::format("device '{}' can't run it", state_.described(device).name))));
  return false;
}

PlannedTask& Gangs::next(DeviceId device) {
  const State& gang = gangs_.at(claims_.first(device));
  const auto here = [&](const Member& member) { return member.task->device == device; };
  return *std::ranges::find_if(gang.members, here)->task;
}

void Gangs::claim(const State& gang) {
  claims_.claim(gang.gang->id, devices_of(gang));
  for (const Member& member : gang.members) state_.devices[member.task->device].claimed = true;
}

/// What its devices couldn't begin before it they can now.
void Gangs::drop_claims(const State& gang) {
  claims_.drop(gang.gang->id);
  const GangClaims::Devices claimed = claims_.claimed();
  for (DeviceState& device : state_.devices) {
    if (!device.claimed) continue;
    device.claimed = (claimed >> device.id & 1) != 0;
    device.touched = true;
  }
}

void Gangs::fail(State& gang, const PlannedTask* culprit, const std::exception_ptr& error) {
  gang.failed = true;
  gang.others_error = error_of_others(error);
  for (Member& member : gang.members)
    member.error = !culprit || member.task == culprit ? error : gang.others_error;
  gang.gang->broken.store(true, std::memory_order_release);
  drop_claims(gang);
  make_ready(gang);
}

void Gangs::left(const PlannedTask& planned, bool has_failed) {
  if (!planned.gang) return;
  State& gang = gangs_.at(planned.gang->id);
  if (has_failed) planned.gang->broken.store(true, std::memory_order_release);
  std::erase_if(gang.members, [&](const Member& each) { return each.task == &planned; });
  // Some may still be submitted.
  if (++gang.left == gang.gang->size) gangs_.erase(planned.gang->id);
}

void Gangs::device_lost(DeviceId device, const std::exception_ptr& cause) {
  for (auto& [id, gang] : gangs_) {
    const auto here = std::ranges::find_if(
        gang.members, [&](const Member& member) { return member.task->device == device; });
    if (here == gang.members.end()) continue;
    gang.gang->broken.store(true, std::memory_order_release);
    if (!here->task->is_among(issued_states) && !gang.failed) fail(gang, here->task, cause);
  }
}

bool Gangs::fail_oldest(const std::exception_ptr& error) {
  if (claims_.oldest() == 0) return false;
  fail(gangs_.at(claims_.oldest()), nullptr, error);
  return true;
}

void Gangs::validate() const {
  const auto expect = [](bool holds, const char* what, GangId id) {
    if (!holds) quadriga::fail(Errc::internal, fmt::format("gang {}: {}", id, what));
  };
  for (const auto& [id, gang] : gangs_) {
    const auto count = std::ranges::count_if(
        gang.members, [](const Member& member) { return member.task->is_among(issued_states); });
    const bool all_there = gang.members.size() == gang.gang->size;
    expect(!all_there || count == 0 || count == static_cast<std::ptrdiff_t>(gang.gang->size),
           "a part of it was issued", id);
    expect(!gang.failed || count == 0, "it was issued although one can't run", id);
  }
  for (const DeviceState& device : state_.devices)
    expect(device.claimed == (claims_.first(device.id) != 0), "its claims aren't noted",
           claims_.first(device.id));
}

}  // namespace quadriga
