// SPDX-License-Identifier: BSD-3-Clause
// src/engine/renaming.cpp: names are taken, retired, used again, and brought home.
#include "engine/renaming.h"

#include <quadriga/error.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>

#include "device/backend.h"
#include "engine/own_task.h"
#include "graph/task_life.h"

namespace quadriga {
namespace {

void copy_columns(const Arguments& arguments) {
  const View& to = arguments.operands[0];
  const View& from = arguments.operands[1];
  const std::size_t element = size_of(to.dtype);
  const std::size_t width = static_cast<std::size_t>(to.rows) * element;
  for (std::int64_t j = 0; j < to.cols; ++j)
    std::memcpy(to.as<std::byte>() + static_cast<std::size_t>(j * to.ld) * element,
                from.as<std::byte>() + static_cast<std::size_t>(j * from.ld) * element, width);
}

/// It runs where home is. Where the machine's table doesn't say what bytes take it takes no time.
Codelet copy_codelet(const Machine& machine) {
  Codelet codelet;
  codelet.name = "bring home";
  codelet.access = {Access::write, Access::read};
  codelet.cpu = copy_columns;
  codelet.host_only = true;
  const bool is_known = std::ranges::all_of(machine.devices, [&](const Device& device) {
    return device.kind != DeviceKind::cpu || machine.has_kernel(device, Cost::of_work(0, 0).kernel);
  });
  codelet.cost = [is_known](const Arguments& arguments) {
    const auto bytes = static_cast<double>(bytes_of(arguments.operands[0]));
    return is_known ? Cost::of_work(0, 2 * bytes) : Cost{no_work, 0, 0};
  };
  return codelet;
}

}  // namespace

Renaming::Renaming(Graph& graph, Executor& executor, Sharing& sharing, const Machine& machine,
                   std::size_t limit)
    : graph_(graph),
      executor_(executor),
      sharing_(sharing),
      limit_(limit),
      copy_(copy_codelet(machine)) {
  executor_.copies = &copy_;
}

bool Renaming::may_have_names(const Datum& datum) noexcept {
  return datum.home && !datum.buffer && datum.home_space == host_space && !datum.is_private &&
         !datum.keep && !datum.resident && !datum.aliased && !datum.watch && datum.bytes() > 0;
}

/// No task that touches it is pending.
bool Renaming::is_idle(Datum& datum) {
  std::vector<TaskRef> pending;
  graph_.collect(datum, Access::update, pending);
  return pending.empty();
}

/// Tasks that read its content are pending.
bool Renaming::is_read(const Datum& datum) const {
  const History& history = datum.history;
  if (history.group != Access::read) return false;
  const auto is_pending = [&](const TaskRef& reader) { return !graph_.ended(reader); };
  return std::any_of(history.readers, history.readers + history.count, is_pending) ||
         (history.more && std::ranges::any_of(*history.more, is_pending));
}

void Renaming::prepare(Task& task) {
  if (task.parent()) return prepare_child(task);
  const bool stays = task.codelet->submits || is_detached(*task.codelet) || task.gang();
  for (OperandSlot& slot : task.slots()) {
    Datum& datum = *slot.datum;
    if (stays || slot.access >= Access::commute || !may_have_names(datum))
      bring_home_locked(datum);
    else if (slot.access == Access::write)
      slot.datum = &place_to_write(datum);
    else if (datum.renamed)
      slot.datum = datum.renamed;
  }
}

/// What a parent has as operand is at home, and nobody else changes it there. Other data, which the
/// body registered, may be in names; children follow nothing but each other, so they are told to
/// follow the copies home: of what their memory overlaps, too.
void Renaming::prepare_child(Task& task) {
  const Task* outermost = task.parent();
  while (const Task* const around = outermost->parent()) outermost = around;
  for (const OperandSlot& slot : task.slots()) {
    follow_home(task, *slot.datum, *outermost);
    for (Datum* const alias : slot.datum->aliases) follow_home(task, *alias, *outermost);
  }
}

/// Tasks that were submitted after the outermost one may wait for it. Its child isn't ordered after
/// those, nor after a copy that follows them.
void Renaming::follow_home(Task& child, Datum& datum, const Task& outermost) {
  const auto has = [&](const Task& task) {
    return std::any_of(task.operands, task.operands + task.operand_count,
                       [&](const OperandSlot& slot) { return slot.datum == &datum; });
  };
  for (const Task* around = child.parent(); around; around = around->parent())
    if (has(*around)) return;
  const std::uint64_t number = outermost.id.load(std::memory_order_relaxed);
  if (datum.renamed && last_before_copy(datum) < number) bring_home_locked(datum);
  const auto found = places_.find(&datum);
  if (found == places_.end()) return;
  for (Datum* const place : found->second) {
    if (place == &datum) continue;
    const Name& name = *static_cast<Name*>(place);
    if (name.copy_follows >= number || graph_.ended(name.copy)) continue;
    child.has_extra = true;
    if (!child.extra.after) child.extra.after = std::make_unique<std::vector<TaskRef>>();
    child.extra.after->push_back(name.copy);
  }
}

/// Of the pending tasks that a copy home would follow, the one that was submitted last; 0: none.
std::uint64_t Renaming::last_before_copy(Datum& datum) {
  std::vector<TaskRef> pending;
  graph_.collect(*datum.renamed, Access::read, pending);
  graph_.collect(datum, Access::update, pending);
  std::uint64_t last = 0;
  for (const TaskRef& each : pending)
    if (!Graph::is_hold(each.id)) last = std::max(last, each.id);
  return last;
}

/// Home as soon as nobody uses it, which saves the copy; elsewhere if readers are in the way.
Datum& Renaming::place_to_write(Datum& datum) {
  Datum& now = datum.renamed ? *datum.renamed : datum;
  if (datum.renamed && is_idle(datum)) {
    move(datum, datum);
    return datum;
  }
  if (!is_read(now)) return now;
  Datum* const other = other_place(datum);
  if (!other) {
    ++counters_.refused;
    return now;
  }
  move(datum, *other);
  ++counters_.renamed;
  return *other;
}

/// Where nobody is; if there is no memory, where the oldest content is. Null: there is none.
Datum* Renaming::other_place(Datum& datum) {
  if (Name* const name = take(datum)) return name;
  const auto found = places_.find(&datum);
  if (found == places_.end() || found->second.size() == 1) return nullptr;
  Datum* const oldest = found->second.front();
  if (oldest != &datum) std::erase(retired_[shape_of(datum)], static_cast<Name*>(oldest));
  return oldest;
}

/// The newest content is at a place that isn't retired.
void Renaming::move(Datum& datum, Datum& place) {
  if (datum.renamed) retired_[shape_of(datum)].push_back(static_cast<Name*>(datum.renamed));
  datum.renamed = &place == &datum ? nullptr : &place;
  std::vector<Datum*>& places = places_[&datum];
  if (places.empty()) places.push_back(&datum);
  std::erase(places, &place);
  places.push_back(&place);
}

/// One of the datum's that nobody uses; null if there is no memory for it.
Renaming::Name* Renaming::take(Datum& datum) {
  std::deque<Name*>& retired = retired_[shape_of(datum)];
  Name* name = nullptr;
  if (!retired.empty() && is_idle(*retired.front())) {
    name = retired.front();
    retired.pop_front();
    if (name->of) std::erase(places_[name->of], name);
  } else if (datum.bytes() <= limit_ - bytes_) {
    name = make(datum);
  }
  if (!name) return nullptr;
  name->of = &datum;
  name->copy = {};
  return name;
}

Renaming::Name* Renaming::make(const Datum& datum) {
  auto name = std::make_unique<Name>();
  name->rows = datum.rows;
  name->cols = datum.cols;
  name->ld = datum.rows;
  name->dtype = datum.dtype;
  name->is_private = true;
  name->resident = true;
  try {
    executor_.add(*name);
  } catch (const Error& error) {
    if (error.code() != Errc::too_large) throw;
    return nullptr;  // others use up the host's buffers
  }
  bytes_ += datum.bytes();
  counters_.most_bytes = std::max(counters_.most_bytes, bytes_);
  return names_.emplace_back(std::move(name)).get();
}

/// A task failed, or was cancelled, that should have written the newest content.
void Renaming::lose(Datum& datum) {
  datum.failed_by.store(datum.renamed->failed_by.load(std::memory_order_relaxed),
                        std::memory_order_relaxed);
  quadriga::lose(datum);
  move(datum, datum);
}

bool Renaming::bring_home_locked(Datum& datum) {
  if (!datum.renamed) return false;
  Name& name = static_cast<Name&>(*datum.renamed);
  if (is_idle(name) && is_idle(datum) && name.poisoned.load(std::memory_order_acquire)) {
    lose(datum);
    return false;
  }
  name.copy_follows = last_before_copy(datum);
  Task& task = own_task(graph_, copy_, 2, std::numeric_limits<std::int32_t>::max(), nullptr);
  task.operands[0].datum = &datum;
  task.operands[0].access = Access::write;
  task.operands[1].datum = &name;
  task.operands[1].access = Access::read;
  move(datum, datum);
  sharing_.before(task);
  const std::uint64_t id = submit_own(graph_, executor_, task);
  name.copy = {&task, id};
  ++counters_.copied;
  return true;
}

void Renaming::bring_home(Datum& datum) {
  if (limit_ == 0) return;
  const std::lock_guard lock(graph_.submission());
  bring_home_locked(datum);
}

void Renaming::bring_all_home() {
  if (limit_ == 0) return;
  const std::lock_guard lock(graph_.submission());
  for (const std::unique_ptr<Name>& name : names_)
    if (name->is_current()) bring_home_locked(*name->of);
}

std::vector<TaskRef> Renaming::bring_idle_home() {
  std::vector<TaskRef> copies;
  if (limit_ == 0) return copies;
  const std::lock_guard lock(graph_.submission());
  for (const std::unique_ptr<Name>& name : names_) {
    if (!name->is_current() || !is_idle(*name) || !is_idle(*name->of)) continue;
    if (bring_home_locked(*name->of)) copies.push_back(name->copy);
  }
  return copies;
}

/// Each whose copy should have been the last that wrote the datum.
void Renaming::keep_what_was_not_copied() {
  if (limit_ == 0) return;
  const std::lock_guard lock(graph_.submission());
  for (const std::unique_ptr<Name>& name : names_) {
    Datum* const datum = name->of;
    if (!datum || datum->renamed || name->copy.id == 0 || name->poisoned.load()) continue;
    const bool is_last = datum->history.writer.id == name->copy.id;
    if (!is_last || !datum->poisoned.load() || datum->failed_by.load() != name->copy.id) continue;
    std::erase(retired_[shape_of(*datum)], name.get());
    move(*datum, *name);
  }
}

Datum& Renaming::current(Datum& datum) {
  if (limit_ == 0) return datum;
  const std::lock_guard lock(graph_.submission());
  return datum.renamed ? *datum.renamed : datum;
}

void Renaming::collect(const Datum& datum, std::vector<TaskRef>& out) {
  if (limit_ == 0) return;
  const std::lock_guard lock(graph_.submission());
  const auto found = places_.find(&datum);
  if (found == places_.end()) return;
  for (Datum* const place : found->second) graph_.collect(*place, Access::update, out);
}

bool Renaming::has_names(const Datum& datum) {
  if (limit_ == 0) return false;
  const std::lock_guard lock(graph_.submission());
  return places_.contains(&datum);
}

/// Calls visit(name) for those whose content is on its way home.
template <class Visit>
void Renaming::for_each_copied(const Datum& datum, Visit&& visit) const {
  const auto found = places_.find(&datum);
  if (found == places_.end()) return;
  for (Datum* const place : found->second) {
    if (place == &datum) continue;
    Name& name = static_cast<Name&>(*place);
    if (name.copy.id != 0 && !graph_.ended(name.copy)) visit(name);
  }
}

std::uint64_t Renaming::newest_writer(const Datum& datum) {
  const std::lock_guard lock(graph_.submission());
  if (datum.renamed) return datum.renamed->history.writer.id;
  std::uint64_t writer = datum.history.writer.id;
  for_each_copied(datum, [&](const Name& name) {
    if (name.copy.id == datum.history.writer.id) writer = name.history.writer.id;
  });
  return writer;
}

void Renaming::collect_before_host(Datum& datum, Access access, std::vector<std::uint64_t>& out) {
  const std::lock_guard lock(graph_.submission());
  std::vector<TaskRef> pending;
  graph_.collect(datum, datum.renamed ? Access::update : access, pending);
  if (datum.renamed) graph_.collect(*datum.renamed, Access::read, pending);
  for_each_copied(datum, [&](Name& name) {
    graph_.collect(name, Access::read, pending);
    out.push_back(name.copy_follows);
  });
  for (const TaskRef& each : pending) out.push_back(each.id);
}

void Renaming::forget(std::span<Datum* const> leaving) {
  if (limit_ == 0) return;
  const std::lock_guard lock(graph_.submission());
  for (Datum* const datum : leaving) {
    const auto found = places_.find(datum);
    if (found == places_.end()) continue;
    move(*datum, *datum);
    for (Datum* const place : found->second)
      if (place != datum) static_cast<Name*>(place)->of = nullptr;
    places_.erase(found);
  }
}

void Renaming::remove(bool all) {
  if (limit_ == 0) return;
  std::vector<std::unique_ptr<Name>> leaving;
  std::vector<Datum*> data;
  {
    const std::lock_guard lock(graph_.submission());
    const auto stays = [&](const std::unique_ptr<Name>& name) {
      return !all && (name->is_current() || !is_idle(*name));
    };
    const auto first = std::stable_partition(names_.begin(), names_.end(), stays);
    std::move(first, names_.end(), std::back_inserter(leaving));
    names_.erase(first, names_.end());
    for (const std::unique_ptr<Name>& name : leaving) {
      data.push_back(name.get());
      bytes_ -= name->bytes();
      if (name->of) std::erase(places_[name->of], name.get());
      std::erase(retired_[shape_of(*name)], name.get());
    }
    std::erase_if(places_, [](const auto& each) { return each.second.size() == 1; });
    std::erase_if(retired_, [](const auto& each) { return each.second.empty(); });
  }
  if (!data.empty()) executor_.remove(data);
}

RenamingCounters Renaming::counters() {
  if (limit_ == 0) return {};
  const std::lock_guard lock(graph_.submission());
  return counters_;
}

void Renaming::reset_counters() {
  if (limit_ == 0) return;
  const std::lock_guard lock(graph_.submission());
  counters_ = {.most_bytes = bytes_};
}

}  // namespace quadriga
