// SPDX-License-Identifier: BSD-3-Clause
// src/engine/sharing.cpp: who is whose alias, and the tasks that bring aliases home.
#include "engine/sharing.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "device/backend.h"
#include "engine/own_task.h"
#include "graph/brings_home.h"

namespace quadriga {

std::string text_of(const Datum& datum) {
  return fmt::format("{} x {} {} at {}", datum.rows, datum.cols, name(datum.dtype),
                     static_cast<const void*>(datum.home));
}

void Sharing::add(Datum& datum) {
  std::vector<Datum*> others;
  regions_.overlapping(region_of(datum), others);
  regions_.add(datum);
  if (others.empty()) return;
  std::lock_guard lock(graph_.submission());
  aliased_.fetch_add(1, std::memory_order_relaxed);
  datum.aliased = true;
  datum.aliases = others;
  for (Datum* const other : others) {
    other->aliases.push_back(&datum);
    if (!other->aliased) {
      aliased_.fetch_add(1, std::memory_order_relaxed);
      other->aliased = true;
      other->dirty = other->versions > 0;
    }
    datum.stale |= is_newer(*other);
  }
}

bool Sharing::remove(Datum& datum) {
  {
    std::lock_guard lock(graph_.submission());
    std::vector<TaskRef> tasks;
    graph_.collect(datum, Access::update, tasks);
    if (!tasks.empty()) return false;
    for (Datum* const other : datum.aliases) std::erase(other->aliases, &datum);
    datum.aliases.clear();
    if (datum.aliased) aliased_.fetch_sub(1, std::memory_order_relaxed);
  }
  regions_.remove(datum);
  return true;
}

bool Sharing::overlap(const Datum& a, const Datum& b) const {
  std::lock_guard lock(graph_.submission());
  return std::ranges::find(a.aliases, &b) != a.aliases.end();
}

void Sharing::prepare(Task& task) {
  if (on_host_) return;
  // What the task overwrites as a whole isn't needed any more, also if it is lost.
  const auto forget_covered = [](const Datum& datum) {
    for (Datum* const alias : datum.aliases)
      if (covers(region_of(datum), region_of(*alias))) alias->brought_home = {};
  };
  for (OperandSlot& slot : task.slots())
    if (slot.datum->stale) refresh(*slot.datum, task);
  for (OperandSlot& slot : task.slots()) {
    if (!slot.datum->aliased || !writes(slot.access)) continue;
    if (slot.access == Access::write) forget_covered(*slot.datum);
    written(*slot.datum, task.codelet->submits);
  }
}

/// Children may have written any of the aliases of what their parent writes.
void Sharing::written(Datum& datum, bool with_aliases) {
  datum.dirty = true;
  for (Datum* const alias : datum.aliases) {
    alias->stale = true;
    if (with_aliases) alias->dirty = datum.stale = true;
  }
}

void Sharing::refresh(Datum& datum, Task& task) {
  std::vector<Datum*> newer;
  for (Datum* const alias : datum.aliases)
    if (is_newer(*alias)) newer.push_back(alias);
  submit(datum, newer, task);
}

/// Than home, perhaps.
bool Sharing::is_newer(const Datum& datum) const {
  return datum.dirty || !graph_.ended(datum.brought_home) ||
         failures_.failed(datum.brought_home.id);
}

/// What the stale one has itself has to be valid, unless it was overwritten as a whole since, or
/// all that it lacks is what the last such task didn't bring.
void Sharing::submit(Datum& stale, std::span<Datum* const> newer, Task& follower) {
  const bool at_host = stale.home_space == host_space;
  Task& task = own_task(graph_, brings_home()[at_host ? 0 : 1], newer.size() + 1, follower.priority,
                        follower.parent());
  for (DeviceId device = 0; !at_host && device < machine_.devices.size(); ++device)
    if (machine_.devices[device].space == stale.home_space) task.device = device;
  task.operands[0].datum = &stale;
  const bool is_overwritten = !stale.dirty && stale.brought_home.id == 0;
  const bool keeps = !is_overwritten && (!stale.poisoned.load(std::memory_order_acquire) ||
                                         stale.is_lost() || is_newer(stale));
  task.operands[0].access = keeps ? Access::update : Access::write;
  for (std::size_t i = 0; i < newer.size(); ++i) {
    task.operands[i + 1].datum = newer[i];
    task.operands[i + 1].access = Access::read;
  }
  const std::uint64_t id = submit_own(graph_, executor_, task);
  stale.stale = false;
  for (Datum* const each : newer) {
    each->dirty = false;
    each->brought_home = {&task, id};
  }
}

}  // namespace quadriga
