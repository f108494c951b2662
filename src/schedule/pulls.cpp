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

std::uint64_t number_of(const PlannedTask& planned) {
  return planned.task->id.load(std::memory_order_relaxed);
}

}  // namespace

bool Pulls::add(PlannedTask& planned) {
  const PolicyTraits& traits = policy_.traits();
  if (!traits.pulls || planned.device != no_device || planned.gang) return false;
  if (traits.follows_owners && planned.task->owner != pulled_owner) return false;
  if (tasks_.contains(number_of(planned))) return true;
  if (!placement_.has_choice(planned)) return false;
  tasks_.emplace(number_of(planned), &planned);
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
  tasks_.erase(found);
  state_.plan.reposition(planned, position_of(*planned.task, pulled_++));
  placement_.take(planned, device.id);
  state_.plan.make_ready(planned);
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
  tasks_.erase(tasks_.begin());
  placement_.choose(oldest);
  policy_.placed(number_of(oldest), oldest.device);
  DeviceState& device = state_.devices[oldest.device];
  if (!may_issue(device, oldest)) return false;
  state_.plan.make_ready(oldest);
  device.touched = true;
  return true;
}

void Pulls::left(const PlannedTask& planned) {
  if (!tasks_.empty()) tasks_.erase(number_of(planned));
}

std::vector<PlannedTask*> Pulls::device_lost() {
  std::vector<PlannedTask*> homeless;
  std::erase_if(tasks_, [&](const auto& entry) {
    if (placement_.has_choice(*entry.second)) return false;
    homeless.push_back(entry.second);
    return true;
  });
  for (const auto& [number, planned] : tasks_) policy_.waiting(placement_.news_of(*planned));
  return homeless;
}

void Pulls::validate() const {
  for (const auto& [number, planned] : tasks_)
    if (planned->device != no_device || planned->ready || number_of(*planned) != number)
      fail(Errc::internal, "a task that waits for a device has one");
}

}  // namespace quadriga
