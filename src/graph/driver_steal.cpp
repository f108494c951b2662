// SPDX-License-Identifier: BSD-3-Clause
// src/graph/driver_steal.cpp: what an idle device takes from another's queue.
#include "graph/driver.h"

namespace quadriga {

/// How many tasks run side by side, each as fast as alone.
double Driver::width(const DeviceState& device) {
  return device.space == host_space ? static_cast<double>(device.streams.size()) : 1;
}

/// What is queued for each device that could lose a task; none of the thief's own. The host loses
/// only tasks of unknown cost: others it got with good reason.
std::vector<double> Driver::stealable(const DeviceState& thief) {
  std::vector<double> queued(devices_.size(), 0);
  for (const DeviceState& device : devices_) {
    if (device.id == thief.id || device.lost) continue;
    const DevicePlan& plan = plan_.on(device.id);
    if (plan.ready.empty() || (device.space == host_space && plan.learning == 0)) continue;
    queued[device.id] =
        plan.queued_seconds > 0 ? plan.queued_seconds : static_cast<double>(plan.ready.size());
  }
  return queued;
}

/// The candidate but for its gain; `fetch` gets the seconds that bringing its operands takes.
StealCandidate Driver::candidate(const PlannedTask& planned, const DeviceState& thief,
                                 const DeviceState& victim, double& fetch) {
  // What is written has to come back for the owner's next task.
  constexpr double there_and_back = 3;
  StealCandidate candidate;
  candidate.experience = experience_on(planned, thief.id);
  for (int i = 0; i < planned.task->operand_count; ++i) {
    if (planned.task->reduction(i)) continue;
    const OperandSlot& slot = planned.task->operands[i];
    const TileId tile = slot.datum->tile;
    const auto size = static_cast<double>(slot.datum->bytes());
    if (memory_->directory().valid(tile, thief.space)) {
      candidate.bytes_here += size;
    } else if (slot.access != Access::write) {
      candidate.bytes_missing += size;
      const bool returns = writes(slot.access) && plan_.uses(tile).writers > 1;
      fetch += memory_->fetch_seconds(tile, thief.space) * (returns ? there_and_back : 1);
    }
    if (memory_->directory().valid(tile, victim.space)) candidate.staged_there += size;
  }
  return candidate;
}

bool Driver::steal(DeviceState& thief) {
  // A CPU without cores is there for what no other device can run.
  if (thief.space == host_space && machine_.devices[thief.id].cores == 0) return false;
  std::vector<double> queued = stealable(thief);
  while (true) {
    const std::size_t chosen = policy_->victim({thief.id, queued});
    if (chosen >= devices_.size()) return false;
    if (steal_from(devices_[chosen], thief)) return true;
    // Others may have what the host must keep.
    if (devices_[chosen].space != host_space) return false;
    queued[chosen] = 0;
  }
}

bool Driver::steal_from(const DeviceState& victim, DeviceState& thief) {
  constexpr std::size_t most = 64;
  // A stolen task's copies delay those of others on the links they share.
  constexpr double crowding = 4;
  std::vector<StealCandidate> candidates;
  std::vector<PlannedTask*> tasks;
  std::size_t looked = 0;
  const bool from_host = victim.space == host_space;
  const double share = width(victim);
  const double busy = thief.issued_seconds / width(thief);
  double ahead = victim.issued_seconds / share;
  for (PlannedTask* planned : plan_.on(victim.id).ready) {
    if (tasks.size() == most || (from_host && ++looked > 4 * most)) break;
    const double there = planned->learns ? seconds_on(*planned, victim.id) : planned->seconds;
    const double end = ahead + there;
    ahead += there / share;
    if (planned == victim.head || planned->task->device != no_device ||
        (planned->left_host && thief.space == host_space) || (from_host && !planned->learns) ||
        !can_run(thief, *planned->task) || !may_issue(thief, *planned))
      continue;
    double fetch = 0;
    StealCandidate found = candidate(*planned, thief, victim, fetch);
    const double here = seconds_on(*planned, thief.id) + (planned->learns ? busy : 0);
    found.gain_seconds =
        there > 0 ? end - crowding * fetch - here : static_cast<double>(tasks.size()) + 0.5;
    candidates.push_back(found);
    tasks.push_back(planned);
  }
  const std::size_t choice = policy_->choose(candidates);
  if (choice >= tasks.size()) return false;
  PlannedTask& stolen = *tasks[choice];
  plan_.unplace(stolen);
  predict_on(stolen, thief.id);
  stolen.stolen = true;
  plan_.place(stolen, thief.id);
  recorder_.mark(thief.streams.front().lane, Mark::steal, no_tile, stolen.task->id, now());
  return true;
}

}  // namespace quadriga
