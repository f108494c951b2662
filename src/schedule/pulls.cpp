// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/pulls.cpp: when a device pulls, and what becomes of the policy's choice.
#include "schedule/pulls.h"

#include <quadriga/error.h>

#include <algorithm>
#include <functional>

#include "graph/pulled.h"
#include "schedule/pace.h"

namespace quadriga {
namespace {

/// As many as a device looks at when it issues.
constexpr std::size_t most_looked = 16;

std::uint64_t number_of(const PlannedTask& planned) {
  return planned.task->id.load(std::memory_order_relaxed);
}

}  // namespace

bool Pulls::add(PlannedTask& planned) {
  const PolicyTraits& traits = policy_.traits();
  if (!traits.pulls || planned.device != no_device || planned.gang) return false;
  if (traits.follows_owners && planned.task->owner != pulled_owner) return false;
  if (planned.state() == TaskState::waiting) return true;
  if (!placement_.has_choice(planned)) return false;
  planned.enter(TaskState::waiting);
  tasks_.emplace(number_of(planned), &planned);
  priorities_.insert(planned.task->priority);
  planned.waited = true;
  policy_.waiting(placement_.news_of(planned));
  return true;
}

void Pulls::place(const DeviceState& device, std::uint64_t id) {
  const auto found = tasks_.find(id);
  if (found == tasks_.end()) return policy_.pulled_wrongly(id);
  PlannedTask& planned = *found->second;
  const bool can_run = placement_.feasibility().can_run(device, *planned.task);
  if (!can_run) policy_.pulled_wrongly(id);
  if (!can_run || !may_issue(device, planned)) return policy_.waiting(placement_.news_of(planned));
  take_out(found);
  const bool urgent = is_most_urgent(planned);
  state_.plan.reposition(planned, position_of(*planned.task, pulled_++, urgent));
  placement_.take(planned, device.id);
  state_.plan.make_ready(planned);
}

Pulls::Waiting::iterator Pulls::take_out(Waiting::iterator entry) {
  entry->second->enter(TaskState::submitted);
  priorities_.erase(priorities_.find(entry->second->task->priority));
  return tasks_.erase(entry);
}

/// Of what is ready the first few of each device are looked at: what is behind them has to wait
/// longer anyway, even if it is more urgent.
bool Pulls::is_most_urgent(const PlannedTask& planned) const {
  const std::int64_t priority = planned.task->priority;
  if (!priorities_.empty() && *priorities_.rbegin() >= priority) return false;
  return std::ranges::all_of(state_.devices, [&](const DeviceState& device) {
    const PlanSet& ready = state_.plan.on(device.id).ready();
    std::size_t looked = 0;
    for (auto next = ready.begin(); next != ready.end() && looked < most_looked; ++next, ++looked)
      if ((*next)->task->priority >= priority) return false;
    return true;
  });
}

bool Pulls::is_idle() const {
  return !state_.any_issued() && std::ranges::all_of(state_.devices, [&](const DeviceState& each) {
    return state_.plan.on(each.id).ready().empty();
  });
}

void Pulls::pull(const DeviceState& device) {
  if (tasks_.empty() || device.is_closed()) return;
  if (state_.plan.on(device.id).ready().size() >= pace::pulled_ahead) return;
  const std::function<bool(std::uint32_t)> has = [&](std::uint32_t tile) {
    return state_.memory->directory().valid(tile, device.space);
  };
  policy_.pull({device.id, has}, chosen_);
  for (const std::uint64_t id : chosen_) place(device, id);
}

bool Pulls::place_oldest() {
  if (tasks_.empty() || !is_idle()) return false;
  PlannedTask& oldest = *tasks_.begin()->second;
  take_out(tasks_.begin());
  placement_.choose(oldest);
  policy_.placed(number_of(oldest), oldest.device);
  DeviceState& device = state_.devices[oldest.device];
  if (!may_issue(device, oldest)) return false;
  state_.plan.make_ready(oldest);
  device.touched = true;
  return true;
}

std::vector<PlannedTask*> Pulls::device_lost() {
  std::vector<PlannedTask*> homeless;
  for (auto entry = tasks_.begin(); entry != tasks_.end();) {
    if (placement_.has_choice(*entry->second)) {
      ++entry;
      continue;
    }
    homeless.push_back(entry->second);
    entry = take_out(entry);
  }
  for (const auto& [number, planned] : tasks_) policy_.waiting(placement_.news_of(*planned));
  return homeless;
}

void Pulls::validate() const {
  for (const auto& [number, planned] : tasks_)
    if (planned->state() != TaskState::waiting || number_of(*planned) != number)
      fail(Errc::internal, "a task that waits for a device is in another state");
  if (priorities_.size() != tasks_.size())
    fail(Errc::internal, "tasks that wait for a device don't have one priority each");
}

}  // namespace quadriga
