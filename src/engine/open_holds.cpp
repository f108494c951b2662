// SPDX-License-Identifier: BSD-3-Clause
// src/engine/open_holds.cpp: which threads have access to data, and who would wait for himself.
#include "engine/open_holds.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <utility>

#include "engine/sharing.h"

namespace quadriga {

std::thread::id& acting_thread() noexcept {
  thread_local std::thread::id id = std::this_thread::get_id();
  return id;
}

void OpenHolds::add(std::shared_ptr<Hold> hold) {
  const std::lock_guard lock(mutex_);
  holds_.push_back(std::move(hold));
  count_.fetch_add(1, std::memory_order_release);
}

bool OpenHolds::take(const Hold& hold) {
  const std::lock_guard lock(mutex_);
  if (std::erase_if(holds_, [&](const auto& each) { return each.get() == &hold; }) == 0)
    return false;
  count_.fetch_sub(1, std::memory_order_release);
  return true;
}

bool OpenHolds::keep(Hold& hold, std::vector<Datum*>& registered) {
  const std::lock_guard lock(mutex_);  // who ends it takes `of`, then this lock
  if (!hold.of.load()) return false;
  hold.registered = std::move(registered);
  return true;
}

std::vector<std::shared_ptr<Hold>> OpenHolds::all() const {
  const std::lock_guard lock(mutex_);
  return holds_;
}

std::vector<HeldDatum> OpenHolds::of(std::thread::id thread) const {
  std::vector<HeldDatum> found;
  if (!any()) return found;
  const std::lock_guard lock(mutex_);
  for (const std::shared_ptr<Hold>& each : holds_)
    if (each->owner == thread && !each->passes)
      found.insert(found.end(), each->data.begin(), each->data.end());
  return found;
}

void OpenHolds::refuse_own(const TaskRef* task) const {
  if (!any()) return;
  if (task && !Graph::is_hold(task->id) && !task->task->behind_hold) return;
  if (task && graph_.ended(*task)) return;
  const std::lock_guard lock(mutex_);
  for (const std::shared_ptr<Hold>& each : holds_)
    if (each->owner == acting_thread() && !each->passes &&
        (each->task->successors.load() != 0 || (task && each->task == task->task)))
      fail(Errc::unavailable,
           fmt::format("tasks wait until this thread has left on_host() of {}: leave it before you "
                       "wait",
                       text_of(*each->data.front().datum)));
}

}  // namespace quadriga
