// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/device_order.h: the order of the tasks that are placed on one device, and how far
// the lookahead sees in it. Pure.
//
// Invariants
//   1. A task is in `planned` from when it is placed here until it is issued, ends or is taken out
//      to be placed anew, and in `ready` while it could be issued.
//   2. `tasks_in_sight()` of the planned tasks have positions up to the horizon.
#pragma once

#include <cstddef>

#include "schedule/cache_hints.h"
#include "schedule/planned_task.h"

namespace quadriga {

class DeviceOrder {
 public:
  const PlanSet& planned() const noexcept { return planned_; }
  const PlanSet& ready() const noexcept { return ready_; }
  /// How many of these may run on another device.
  std::size_t ready_to_move() const noexcept { return ready_to_move_; }
  void insert(PlannedTask& planned);
  void erase(const PlannedTask& planned);
  /// It is planned here, and could be issued from now on.
  void make_ready(PlannedTask& planned) {
    const std::size_t before = ready_.size();
    ready_.insert(planned.position, &planned);
    if (ready_.size() > before) ready_to_move_ += may_move(*planned.task);
  }

  /// The lookahead has the tasks up to here in sight.
  Position horizon() const noexcept { return horizon_; }
  bool is_in_sight(Position position) const noexcept { return position <= horizon_; }
  std::size_t tasks_in_sight() const noexcept { return tasks_in_sight_; }
  /// Moves the horizon behind the next tasks until `most` are before it, and calls visit(task) for
  /// each of them.
  template <class Visit>
  void advance(std::size_t most, Visit&& visit) {
    if (tasks_in_sight_ >= most) return;
    for (auto next = planned_.upper_bound(horizon_);
         next != planned_.end() && tasks_in_sight_ < most; ++next) {
      horizon_ = next.key();
      ++tasks_in_sight_;
      fetch_uses(next, planned_.end());
      visit(**next);
    }
  }
  /// Moves the horizon before the last of its tasks, which is returned; there is one.
  const PlannedTask& retreat();

  /// Of the device of this number. Throws internal if an invariant is broken.
  void validate(DeviceId device) const;

 private:
  PlanSet planned_;
  PlanSet ready_;
  std::size_t ready_to_move_ = 0;
  Position horizon_ = 0;
  std::size_t tasks_in_sight_ = 0;
};

}  // namespace quadriga
