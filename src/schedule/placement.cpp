// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/placement.cpp: candidates for the policy, and what follows from its answers.
#include "schedule/placement.h"

#include <algorithm>
#include <limits>

#include "graph/pulled.h"
#include "schedule/pace.h"
#include "schedule/ready_order.h"

namespace quadriga {

void Placement::submitted(PlannedTask& planned) {
  if (is_bound(*planned.task)) choose(planned);
  if (planned.device == no_device) state_.plan.plan_uses(planned);
}

/// Where it runs is known before it is ready.
bool Placement::is_bound(const Task& task) const {
  if (task.side()) return false;
  const bool has_owner =
      (task.owner != no_device && task.owner != pulled_owner) || task.device != no_device;
  if (has_owner && policy_.traits().plans_ahead) return true;
  return std::ranges::count_if(state_.devices, [&](const DeviceState& device) {
           return feasibility_.can_run(device, task);
         }) == 1;
}

/// That of a task which names one, or whose owner the policy follows, as long as it can run there.
DeviceId Placement::given_device(const Task& task) const {
  for (const DeviceId device :
       {task.device, policy_.traits().follows_owners ? task.owner : no_device})
    if (device < state_.devices.size() && feasibility_.can_run(state_.devices[device], task))
      return device;
  return no_device;
}

bool Placement::has_choice(const PlannedTask& planned) const {
  return !planned.task->side() && given_device(*planned.task) == no_device &&
         std::ranges::any_of(state_.devices, [&](const DeviceState& device) {
           return feasibility_.can_run(device, *planned.task);
         });
}

PlaceCandidate Placement::place_candidate(const PlannedTask& planned,
                                          const DeviceState& device) const {
  const Task& task = *planned.task;
  const Memory& memory = *state_.memory;
  // A tile that a task placed there uses comes anyway: nothing has to be fetched for this one.
  const auto is_wanted = [&](TileId tile) {
    const UseTable& uses = state_.plan.uses();
    if ((uses.users(tile) >> device.id & 1) == 0) return false;
    return uses.first_use(tile, device.id)->access != Access::write;
  };
  PlaceCandidate candidate;
  candidate.device = device.id;
  candidate.kernel_seconds = prediction_.seconds_on(planned, device.id);
  candidate.experience = prediction_.experience_on(planned, device.id);
  candidate.queued_seconds =
      state_.plan.load(device.id).queued_seconds / ScheduleState::width(device);
  for (int i = 0; i < task.operand_count; ++i) {
    if (task.reduction(i)) continue;
    const TileId tile = task.operands[i].datum->tile;
    if (memory.directory().valid(tile, device.space))
      candidate.bytes_here += static_cast<double>(memory.replicas().bytes(tile));
    else if (task.operands[i].access != Access::write && !is_wanted(tile))
      candidate.fetch_seconds += memory.transfers().fetch_seconds(tile, device.space);
  }
  return candidate;
}

std::size_t Placement::ask(const PlannedTask& planned) {
  operands_.clear();
  operands_.reserve(planned.task->operand_count);
  return policy_.place(
      {candidates_, planned.task->owner, planned.activator, view_of(*planned.task, operands_)});
}

/// Of the devices with memory of their own, those that could run it; the host in any case.
void Placement::let_choose(PlannedTask& planned, DeviceSide& side) {
  const Task& task = *planned.task;
  const TileId tile = task.operands[0].datum->tile;
  const Memory& memory = *state_.memory;
  places_.clear();
  for (const DeviceState& device : state_.devices) {
    if (device.space == host_space || !feasibility_.can_run(device, task)) continue;
    const bool is_there = memory.directory().valid(tile, device.space);
    places_.push_back({device.id,
                       is_there ? memory.replicas().address(tile, device.space) : nullptr,
                       (state_.plan.uses().users(tile) >> device.id & 1) != 0});
  }
  const std::optional<DeviceId> chosen = side.choose({planned.task, task.id}, places_);
  const bool was_deferred = planned.state() == TaskState::deferred;
  if (was_deferred == chosen.has_value()) {
    planned.enter(chosen ? TaskState::submitted : TaskState::deferred);
    state_.detached += chosen ? -1 : 1;
  }
  if (!chosen) return;
  for (const DeviceState& device : state_.devices)
    if ((*chosen == no_device ? device.space == host_space : device.id == *chosen) &&
        feasibility_.can_run(device, task))
      return take(planned, device.id);
}

void Placement::choose(PlannedTask& planned) {
  const Task& task = *planned.task;
  if (DeviceSide* const side = task.side()) return let_choose(planned, *side);
  DeviceId chosen = given_device(task);
  if (chosen == no_device) {
    candidates_.clear();
    for (const DeviceState& device : state_.devices)
      if (feasibility_.can_run(device, task))
        candidates_.push_back(place_candidate(planned, device));
    if (candidates_.empty()) return;
    chosen = candidates_[candidates_.size() > 1 ? ask(planned) : 0].device;
  }
  take(planned, chosen);
}

void Placement::rank(PlannedTask& planned) {
  if (planned.ranked || !policy_.traits().ranks) return;
  planned.ranked = true;
  operands_.clear();
  operands_.reserve(planned.task->operand_count);
  const auto rank = static_cast<float>(policy_.rank(view_of(*planned.task, operands_)));
  state_.plan.reposition(planned, position_of(*planned.task, rank));
}

TaskNews Placement::news_of(const PlannedTask& planned) {
  operands_.clear();
  operands_.reserve(planned.task->operand_count);
  kernel_seconds_.clear();
  for (const DeviceState& device : state_.devices)
    kernel_seconds_.push_back(feasibility_.can_run(device, *planned.task)
                                  ? prediction_.seconds_on(planned, device.id)
                                  : std::numeric_limits<double>::infinity());
  return {view_of(*planned.task, operands_), kernel_seconds_};
}

void Placement::move(PlannedTask& planned, DeviceId device) {
  const bool was_ready = planned.state() == TaskState::ready;
  state_.plan.unplace(planned);
  prediction_.place_on(planned, device);
  state_.plan.place(planned, device);
  if (was_ready) state_.plan.make_ready(planned);
}

/// What is queued for each device that could lose a task; none of the thief's own. Unless the
/// policy says so the host loses only tasks of unknown cost: others it got with good reason.
void Placement::note_stealable(const DeviceState& thief) {
  queued_.assign(state_.devices.size(), 0);
  for (const DeviceState& device : state_.devices) {
    if (device.id == thief.id || device.lost) continue;
    const DeviceOrder& order = state_.plan.on(device.id);
    const auto& [queued_seconds, learning] = state_.plan.load(device.id);
    const bool keeps_all =
        device.space == host_space && learning == 0 && !policy_.traits().steals_from_host;
    if (order.ready_to_move() == 0 || keeps_all) continue;
    queued_[device.id] =
        queued_seconds > 0 ? queued_seconds : static_cast<double>(order.ready().size());
  }
}

/// The candidate but for its gain; `fetch` gets the seconds that bringing its operands takes.
StealCandidate Placement::steal_candidate(const PlannedTask& planned, const DeviceState& thief,
                                          const DeviceState& victim, double& fetch) const {
  const Memory& memory = *state_.memory;
  StealCandidate candidate;
  candidate.experience = prediction_.experience_on(planned, thief.id);
  for (int i = 0; i < planned.task->operand_count; ++i) {
    if (planned.task->reduction(i)) continue;
    const OperandSlot& slot = planned.task->operands[i];
    const TileId tile = slot.datum->tile;
    const auto size = static_cast<double>(slot.datum->bytes());
    if (memory.directory().valid(tile, thief.space)) {
      candidate.bytes_here += size;
    } else if (slot.access != Access::write) {
      candidate.bytes_missing += size;
      const bool returns = writes(slot.access) && state_.plan.uses().at(tile).writers > 1;
      fetch += memory.transfers().fetch_seconds(tile, thief.space) *
               (returns ? pace::there_and_back : 1);
    }
    if (memory.directory().valid(tile, victim.space)) candidate.staged_there += size;
  }
  return candidate;
}

bool Placement::steal(DeviceState& thief) {
  // A CPU without cores is there for what no other device can run.
  if (thief.space == host_space && state_.described(thief).cores == 0) return false;
  note_stealable(thief);
  while (true) {
    const std::size_t chosen = policy_.victim({thief.id, queued_});
    if (chosen >= state_.devices.size()) return false;
    if (steal_from(state_.devices[chosen], thief)) return true;
    // Others may have what the host must keep.
    if (state_.devices[chosen].space != host_space) return false;
    queued_[chosen] = 0;
  }
}

bool Placement::may_take(const PlannedTask& planned, const DeviceState& victim,
                         const DeviceState& thief) const {
  if (planned.state() == TaskState::head || !may_move(*planned.task)) return false;
  if (planned.left_host && thief.space == host_space) return false;
  if (victim.space == host_space && !planned.learns && !policy_.traits().steals_from_host)
    return false;
  // Else it would wait on a stream, perhaps for long, and hold up what is issued behind it.
  const bool has_idle_streams = thief.issued <= static_cast<int>(thief.streams.size());
  if (!has_idle_streams && planned.predecessors != Predecessors::done) return false;
  return feasibility_.can_run(thief, *planned.task) && may_issue(thief, planned);
}

bool Placement::steal_from(const DeviceState& victim, DeviceState& thief) {
  offers_.clear();
  offered_.clear();
  std::size_t looked = 0;
  const double share = ScheduleState::width(victim);
  const double busy = thief.issued_seconds / ScheduleState::width(thief);
  double ahead = victim.issued_seconds / share;
  for (PlannedTask* planned : state_.plan.on(victim.id).ready()) {
    // Of those that stay a few are passed: the first that may move are as good as later ones.
    looked += victim.space == host_space || !may_move(*planned->task);
    if (offered_.size() == pace::most_looked || looked > 4 * pace::most_looked) break;
    const double there =
        planned->learns ? prediction_.seconds_on(*planned, victim.id) : planned->seconds;
    const double end = ahead + there;
    ahead += there / share;
    if (!may_take(*planned, victim, thief)) continue;
    double fetch = 0;
    StealCandidate found = steal_candidate(*planned, thief, victim, fetch);
    const double here = busy + prediction_.seconds_on(*planned, thief.id);
    found.gain_seconds = there > 0 ? end - pace::crowding * fetch - here
                                   : static_cast<double>(offered_.size()) + 0.5;
    offers_.push_back(found);
    offered_.push_back(planned);
  }
  const std::size_t choice = policy_.choose(offers_);
  if (choice >= offered_.size()) return false;
  PlannedTask& stolen = *offered_[choice];
  move(stolen, thief.id);
  state_.listener.marked(thief.id, Mark::steal, no_tile, stolen.task->id);
  return true;
}

}  // namespace quadriga
