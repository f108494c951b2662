// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/device_order.cpp: tasks that come and leave, before the horizon or behind it.
#include "schedule/device_order.h"

#include <quadriga/error.h>

#include <algorithm>

namespace quadriga {

void DeviceOrder::insert(PlannedTask& planned) {
  planned_.insert(planned.position, &planned);
  if (is_in_sight(planned.position)) ++tasks_in_sight_;
}

void DeviceOrder::erase(const PlannedTask& planned) {
  planned_.erase(planned.position);
  if (planned.is_among(ready_states) && ready_.erase(planned.position))
    ready_to_move_ -= may_move(*planned.task);
  if (is_in_sight(planned.position)) --tasks_in_sight_;
}

const PlannedTask& DeviceOrder::retreat() {
  const PlannedTask& last = *planned_.last_until(horizon_);
  horizon_ = last.position - 1;
  --tasks_in_sight_;
  return last;
}

void DeviceOrder::validate(DeviceId device) const {
  planned_.validate();
  ready_.validate();
  for (const PlannedTask* planned : ready_)
    if (planned->device != device || !planned->is_among(ready_states) ||
        !planned_.contains(planned->position))
      fail(Errc::internal, "a ready task is not in its device's plan");
  const auto moving = std::ranges::count_if(
      ready_, [](const PlannedTask* planned) { return may_move(*planned->task); });
  if (static_cast<std::size_t>(moving) != ready_to_move_)
    fail(Errc::internal, "the ready tasks that may move are counted wrong");
  const auto in_sight = std::ranges::count_if(
      planned_, [&](const PlannedTask* planned) { return is_in_sight(planned->position); });
  if (static_cast<std::size_t>(in_sight) != tasks_in_sight_)
    fail(Errc::internal, "the tasks up to the horizon are counted wrong");
}

}  // namespace quadriga
