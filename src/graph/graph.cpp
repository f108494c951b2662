// SPDX-License-Identifier: BSD-3-Clause
// src/graph/graph.cpp: dependencies from access order, and the slots of the window.
#include "graph/graph.h"

#include <algorithm>
#include <mutex>

namespace quadriga {

namespace {

/// Free slots that a submitting thread keeps at hand.
struct SlotCache {
  std::uint64_t graph_id = 0;
  FreeSlots free;
};
thread_local SlotCache slot_cache;
std::atomic<std::uint64_t> graphs_made{0};

}  // namespace

Graph::Graph(std::size_t window)
    : window_(window),
      id_(graphs_made.fetch_add(1) + 1),
      cached_(std::clamp<std::size_t>(window / 16, 1, FreeSlots::most)) {}

/// Of this thread.
FreeSlots& Graph::slots_at_hand() const noexcept {
  SlotCache& cache = slot_cache;
  if (cache.graph_id != id_) {
    cache.graph_id = id_;
    cache.free.count = 0;
  }
  return cache.free;
}

bool Graph::has_slot() {
  FreeSlots& free = slots_at_hand();
  if (free.count == 0) take_slots(free, false);
  return free.count > 0;
}

Task* Graph::allocate(bool beyond) {
  FreeSlots& free = slots_at_hand();
  constexpr std::size_t ahead = 4;
  if (free.count == 0) {
    take_slots(free, beyond);
    if (free.count == 0) return nullptr;
    for (std::size_t i = 1; i <= std::min(ahead, free.count); ++i)
      fetch_ahead(free.slots[free.count - i]);
  }
  if (free.count > ahead) fetch_ahead(free.slots[free.count - 1 - ahead]);
  return free.slots[--free.count];
}

/// At least one slot, or none when the window is full.
void Graph::take_slots(FreeSlots& out, bool beyond) {
  std::lock_guard lock(allocation_);
  if (free_.empty()) {
    if (allocated_ >= window_ && !beyond) return;
    const std::size_t count = allocated_ >= window_ ? 16 : std::min(chunk, window_ - allocated_);
    auto& slots = chunks_.emplace_back(new Task[count]);
    allocated_ += count;
    free_.reserve(allocated_);
    for (std::size_t i = count; i-- > 0;) free_.push_back(&slots[i]);
  }
  out.count = std::min(cached_, free_.size());
  std::copy_n(free_.end() - static_cast<std::ptrdiff_t>(out.count), out.count, out.slots);
  free_.resize(free_.size() - out.count);
}

void Graph::release(Task* task, FreeSlots& slots) {
  if (task->has_extra) task->extra = {};
  slots.slots[slots.count++] = task;
  if (slots.count == FreeSlots::most) flush(slots);
}

void Graph::flush(FreeSlots& slots) {
  if (slots.count == 0) return;
  std::lock_guard lock(allocation_);
  free_.insert(free_.end(), slots.slots, slots.slots + slots.count);
  slots.count = 0;
}

bool Graph::ended(const TaskRef& ref) const noexcept {
  return !ref.task || ref.task->id != ref.id || ref.task->done();
}

void Graph::return_edge(Edge* edge) noexcept {
  Edge* head = returned_.load(std::memory_order_relaxed);
  do {
    edge->next = head;
  } while (!returned_.compare_exchange_weak(head, edge, std::memory_order_release,
                                            std::memory_order_relaxed));
}

Edge* Graph::spare_edge() {
  if (!spare_) spare_ = returned_.exchange(nullptr, std::memory_order_acquire);
  if (!spare_) {
    auto& edges = edge_chunks_.emplace_back(new Edge[chunk]);
    for (std::size_t i = 0; i < chunk; ++i) {
      edges[i].next = spare_;
      spare_ = &edges[i];
    }
  }
  Edge* const edge = spare_;
  spare_ = edge->next;
  return edge;
}

bool Graph::follow(TaskRef pred, Task& task, OperandSlot& slot, Counts& counts) {
  if (keep_edges_ && pred.task && pred.id != task.id && !is_hold(pred.id))
    edges_.emplace_back(pred.id, task.id);
  if (ended(pred) || pred.task == &task) return false;
  Edge* edge = slot.edge.target ? spare_edge() : &slot.edge;
  edge->target = reinterpret_cast<std::uintptr_t>(&task) | (counts.strict ? 1 : 0);
  std::atomic<std::uintptr_t>& successors = pred.task->successors;
  std::uintptr_t head = successors.load(std::memory_order_acquire);
  do {
    if (head == Task::closed) {
      if (edge != &slot.edge)
        return_edge(edge);
      else
        edge->target = 0;
      return false;
    }
    edge->next = reinterpret_cast<Edge*>(head & ~Task::issued);
  } while (!successors.compare_exchange_weak(
      head, reinterpret_cast<std::uintptr_t>(edge) | (head & Task::issued),
      std::memory_order_acq_rel, std::memory_order_acquire));
  if (is_hold(pred.id) || pred.task->behind_hold.load(std::memory_order_relaxed)) [[unlikely]]
    task.behind_hold.store(true, std::memory_order_relaxed);
  counts.pending += (head & Task::issued) && !counts.strict ? Task::one_done : Task::one_both;
  ++counts.edges;
  return true;
}

/// An access of the host's that is its data's writer may change them until it ends.
void Graph::follow_writer(const History& history, Task& task, OperandSlot& slot, Counts& counts) {
  if (follow(history.writer, task, slot, counts) && is_hold(history.writer.id)) [[unlikely]]
    slot.behind_host = true;
}

void Graph::follow_all(History& history, bool before, Task& task, OperandSlot& slot,
                       Counts& counts) {
  if (before) {
    for (TaskRef pred : *history.before) follow(pred, task, slot, counts);
    return;
  }
  for (int i = 0; i < history.count; ++i) follow(history.readers[i], task, slot, counts);
  if (history.more)
    for (TaskRef pred : *history.more) follow(pred, task, slot, counts);
}

void Graph::remember(History& history, TaskRef reader) {
  const auto ended = [](const TaskRef& ref) { return ref.task->id != ref.id || ref.task->done(); };
  // Those that have ended are looked for where there is no room without it: the tasks of a window
  // don't fit into the caches.
  const bool has_room = history.more && history.more->size() < history.more->capacity();
  if (history.count == History::inline_readers && !has_room) {
    int kept = 0;
    for (int i = 0; i < history.count; ++i)
      if (!ended(history.readers[i])) history.readers[kept++] = history.readers[i];
    history.count = static_cast<std::uint8_t>(kept);
    if (history.more && history.more->size() == history.more->capacity())
      std::erase_if(*history.more, ended);
  }
  if (history.count < History::inline_readers) {
    history.readers[history.count++] = reader;
    return;
  }
  if (!history.more) history.more = std::make_unique<std::vector<TaskRef>>();
  history.more->push_back(reader);
}

void Graph::join_group(History& history, Task& task, OperandSlot& slot, Counts& counts) {
  const bool has_members = history.count || (history.more && !history.more->empty());
  const Codelet* const combine =
      slot.access == Access::reduce && task.codelet ? task.codelet->combine : nullptr;
  const bool is_other = combine && history.combine && combine != history.combine;
  if (history.group != slot.access || is_other) history.combine = nullptr;
  if (has_members && (history.group != slot.access || is_other)) {
    if (!history.before) history.before = std::make_unique<std::vector<TaskRef>>();
    history.before->assign(history.readers, history.readers + history.count);
    if (history.more) {
      history.before->insert(history.before->end(), history.more->begin(), history.more->end());
      history.more->clear();
    }
    history.count = 0;
  }
  history.group = slot.access;
  if (combine) history.combine = combine;
  if (history.before && !history.before->empty())
    follow_all(history, true, task, slot, counts);
  else
    follow_writer(history, task, slot, counts);
  remember(history, {&task, task.id});
}

void Graph::access(History& history, Task& task, OperandSlot& slot, Counts& counts) {
  if (slot.access != Access::write && slot.access != Access::update) {
    join_group(history, task, slot, counts);
    return;
  }
  const bool has_members = history.count || (history.more && !history.more->empty());
  if (has_members)
    follow_all(history, false, task, slot, counts);
  else
    follow_writer(history, task, slot, counts);
  history.count = 0;
  if (history.more) history.more->clear();
  if (history.before) history.before->clear();
  history.combine = nullptr;
  history.writer = {&task, task.id};
}

/// In the domain of the parent's children, or of the tasks without one.
inline History& Graph::history_of(Datum& datum, Task* parent) {
  return parent ? history_inside(datum, *parent) : datum.history;
}

History& Graph::history_inside(Datum& datum, Task& parent) {
  parent.has_extra = true;
  if (!parent.extra.domain) parent.extra.domain = std::make_unique<Domain>();
  return parent.extra.domain->histories[&datum];
}

/// An access to a datum is one to all whose memory overlaps its own, of which nothing is known but
/// that they are read or changed.
void Graph::access_aliases(Task& task, OperandSlot& slot, Counts& counts) {
  const Access given = slot.access;
  slot.access = given == Access::read ? Access::read : Access::update;
  counts.strict = true;
  for (Datum* const alias : slot.datum->aliases)
    access(history_of(*alias, task.parent()), task, slot, counts);
  counts.strict = false;
  slot.access = given;
}

/// Those it follows were submitted long ago: all are fetched before the first is looked at.
inline void Graph::fetch_predecessors(Task& task) {
  for (const OperandSlot& slot : task.slots()) {
    const History& history = slot.datum->history;
    if (history.writer.task) __builtin_prefetch(history.writer.task, 1);
    if (history.more) __builtin_prefetch(history.more.get(), 1);
    if (!writes(slot.access)) continue;
    for (int i = 0; i < history.count; ++i) __builtin_prefetch(history.readers[i].task, 1);
  }
}

std::uint64_t Graph::link(Task& task) {
  const std::uint64_t id = next_id_.load(std::memory_order_relaxed);
  next_id_.store(id + 1, std::memory_order_release);
  // Who sees by the new id that the slot's last task has ended also sees what that task wrote.
  task.id.store(id, std::memory_order_release);
  task.pending.store(guard, std::memory_order_relaxed);
  task.behind_hold.store(false, std::memory_order_relaxed);
  task.successors.store(0, std::memory_order_release);
  if (task.operand_count > 1) fetch_predecessors(task);
  Task* const parent = task.parent();
  Counts counts;
  for (OperandSlot& slot : task.slots()) {
    slot.edge = {};
    Datum& datum = *slot.datum;
    slot.version = datum.versions;
    slot.precedes_writes = !datum.written;
    slot.behind_host = false;
    if (writes(slot.access)) {
      ++datum.versions;
      if (!datum.written) datum.written = true;
    }
    if (!datum.touched) datum.touched = true;
    access(history_of(datum, parent), task, slot, counts);
    if (datum.aliased) [[unlikely]]
      access_aliases(task, slot, counts);
  }
  if (task.has_extra) [[unlikely]]
    link_without_data(task, counts);
  return counts.pending;
}

/// What it follows whatever it touches.
void Graph::link_without_data(Task& task, Counts& counts) {
  // The slot goes, so its edge must not be used: one that has a target isn't.
  OperandSlot slot;
  slot.access = Access::update;
  slot.edge.target = reinterpret_cast<std::uintptr_t>(&task);
  counts.strict = true;
  if (Datum* const sequence = task.sequence()) {
    slot.datum = sequence;
    access(history_of(*sequence, task.parent()), task, slot, counts);
  }
  if (task.extra.after)
    for (const TaskRef& each : *task.extra.after) follow(each, task, slot, counts);
}

void Graph::link_hold(Task& task) {
  task.id.store(hold_bit | ++holds_, std::memory_order_release);
  open_holds_.fetch_add(1, std::memory_order_relaxed);
  task.pending.store(guard, std::memory_order_relaxed);
  task.successors.store(0, std::memory_order_release);
  Counts counts;
  for (OperandSlot& slot : task.slots()) {
    slot.edge = {};
    access(slot.datum->history, task, slot, counts);
  }
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> Graph::edges() {
  std::lock_guard lock(submission_);
  return edges_;
}

void Graph::collect(Datum& datum, std::vector<TaskRef>& out) {
  std::lock_guard lock(submission_);
  collect(datum, Access::update, out);
}

void Graph::collect(Datum& datum, Access access, std::vector<TaskRef>& out) {
  History& history = datum.history;
  const auto add = [&](TaskRef ref) {
    if (!ended(ref)) out.push_back(ref);
  };
  add(history.writer);
  if (history.before)
    for (TaskRef ref : *history.before) add(ref);
  if (access == Access::read && history.group == Access::read) return;
  for (int i = 0; i < history.count; ++i) add(history.readers[i]);
  if (history.more)
    for (TaskRef ref : *history.more) add(ref);
}

}  // namespace quadriga
