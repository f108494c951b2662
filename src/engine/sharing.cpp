// SPDX-License-Identifier: BSD-3-Clause
// src/engine/sharing.cpp: who is whose alias, and the tasks that bring aliases home.
#include "engine/sharing.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "device/backend.h"
#include "engine/own_task.h"

namespace quadriga {
namespace {

/// Where home is there is nothing to do: the task's operands say what has to be there. A variant
/// for GPUs would let GPUs run what has to be at the host.
Codelet refresh_codelet(std::size_t newer, bool host_only) {
  Codelet codelet;
  codelet.name = "refresh";
  codelet.access.assign(newer + 1, Access::read);
  codelet.access.front() = Access::write;
  codelet.cpu = [](const Arguments&) {};
  if (!host_only) codelet.cuda = codelet.cpu;
  codelet.cost = [](const Arguments&) { return Cost{no_work, 0, 0}; };
  codelet.host_only = host_only;
  return codelet;
}

const Codelet& refresh(bool at_host) {
  static const Codelet on_host = refresh_codelet(0, true);
  static const Codelet on_device = refresh_codelet(0, false);
  return at_host ? on_host : on_device;
}

}  // namespace

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
    datum.stale |= other->dirty || !graph_.ended(other->brought_home);
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
  for (OperandSlot& slot : task.slots())
    if (slot.datum->stale) refresh(*slot.datum, task);
  for (OperandSlot& slot : task.slots())
    if (slot.datum->aliased && writes(slot.access)) written(*slot.datum, task.codelet->submits);
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
    if (alias->dirty || !graph_.ended(alias->brought_home)) newer.push_back(alias);
  submit(datum, newer, task);
}

void Sharing::submit(Datum& stale, std::span<Datum* const> newer, Task& follower) {
  const bool at_host = stale.home_space == host_space;
  Task& task = own_task(graph_, quadriga::refresh(at_host), newer.size() + 1, follower.priority,
                        follower.parent());
  for (DeviceId device = 0; !at_host && device < machine_.devices.size(); ++device)
    if (machine_.devices[device].space == stale.home_space) task.device = device;
  task.operands[0].datum = &stale;
  task.operands[0].access = Access::write;
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
