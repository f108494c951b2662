// SPDX-License-Identifier: BSD-3-Clause
// src/engine/engine_submit.cpp: a task's way into the graph: checked, given a slot, linked.
#include <fmt/format.h>
#include <quadriga/engine.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>

#include "engine/bodies.h"
#include "engine/engine_access.h"
#include "engine/engine_impl.h"
#include "engine/occupied.h"
#include "engine/workspaces.h"
#include "graph/pulled.h"
#include "graph/task_life.h"

namespace quadriga {
namespace {

/// What submission looks at of all operands, before the first is looked at: the data of a large
/// matrix don't fit into the caches.
void fetch_ahead(std::span<const Operand> operands) noexcept {
  constexpr std::size_t line = 64;
  for (const Operand& operand : operands) {
    if (!operand.data) continue;
    const Datum* const datum = EngineAccess::datum(operand.data);
    __builtin_prefetch(datum);
    const char* const begin = reinterpret_cast<const char*>(datum);
    for (std::size_t at = offsetof(Datum, versions); at < offsetof(Datum, history.reduction);
         at += line)
      __builtin_prefetch(begin + at, 1);
  }
}

}  // namespace

/// A slot, if the window has room.
inline Task* Engine::Impl::slot(bool beyond) {
  require(!refuses.load(std::memory_order_seq_cst), "this engine is closed");
  return graph.allocate(beyond);
}

Task& Engine::Impl::await_slot(bool is_another) {
  // Tries without success, and the time that they may take: on a busy machine a yield takes long.
  // Then a share of the time waited so far is slept at a time.
  constexpr int most = 100;
  constexpr std::chrono::microseconds longest{500};
  constexpr int share = 8;
  constexpr std::chrono::nanoseconds longest_sleep{1'000'000};
  int fruitless = 0;
  std::chrono::steady_clock::time_point first;
  while (true) {
    // A task that submits tasks may not wait for a window that it fills itself.
    // On a device it can't run others meanwhile either.
    const bool beyond = is_another || (current_task(graph) && (!on_host || fruitless > most));
    if (Task* const task = slot(beyond)) return *task;
    // Those that fill the window may wait for this thread's own access.
    if (!open_holds.of(acting_thread()).empty()) return *graph.allocate(true);
    if (executor->help()) {
      fruitless = 0;
      continue;
    }
    if (fruitless++ == 0) first = std::chrono::steady_clock::now();
    const std::chrono::nanoseconds waited = std::chrono::steady_clock::now() - first;
    if (waited > longest) {
      fruitless = most + 1;
      std::this_thread::sleep_for(std::min(waited / share, longest_sleep));
    } else {
      std::this_thread::yield();
    }
  }
}

void Engine::Impl::check_operands(const Codelet& codelet, std::span<const Operand> operands) const {
  if (operands.size() != codelet.access.size()) [[unlikely]]
    fail(Errc::invalid_argument,
         fmt::format("codelet '{}' takes {} operand{}, got {}", codelet.name, codelet.access.size(),
                     codelet.access.size() == 1 ? "" : "s", operands.size()));
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Operand& operand = operands[i];
    if (operand.access != codelet.access[i]) [[unlikely]]
      fail(Errc::invalid_argument,
           fmt::format("operand {} of codelet '{}' has mode {}, got {}", i, codelet.name,
                       name(codelet.access[i]), name(operand.access)));
    if (!operand.data || EngineAccess::datum(operand.data)->engine != this) [[unlikely]]
      fail(Errc::invalid_argument,
           fmt::format("operand {} of codelet '{}' is not data of this engine", i, codelet.name));
    for (std::size_t j = 0; j < i; ++j)
      if (operands[j].data == operand.data &&
          (writes(operand.access) || writes(operands[j].access))) [[unlikely]]
        fail(Errc::invalid_argument,
             fmt::format("operands {} and {} of codelet '{}' are the same data, and one is written",
                         j, i, codelet.name));
  }
  if (sharing->any()) [[unlikely]]
    check_aliases(codelet, operands);
}

void Engine::Impl::check_aliases(const Codelet& codelet, std::span<const Operand> operands) const {
  for (std::size_t i = 0; i < operands.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      if (!writes(operands[i].access) && !writes(operands[j].access)) continue;
      const Datum& one = *EngineAccess::datum(operands[j].data);
      const Datum& other = *EngineAccess::datum(operands[i].data);
      if (sharing->overlap(one, other))
        fail(Errc::invalid_argument,
             fmt::format("operands {} and {} of codelet '{}' share memory, and one is written: {}, "
                         "and {}",
                         j, i, codelet.name, text_of(one), text_of(other)));
    }
}

void Engine::Impl::check_detached(const Codelet& codelet, bool has_side) {
  const auto refuse = [&](std::string_view what) {
    fail(Errc::invalid_argument, fmt::format("codelet '{}' {}; {}", codelet.name,
                                             codelet.detaches ? "detaches" : "blocks", what));
  };
  if (!has_side && (!codelet.host_only || codelet.cuda || !codelet.others.empty()))
    refuse("it runs on the host: set `host_only`, and only the cpu variant");
  if (codelet.workspace) refuse("its variant allocates what it needs, and states no `workspace`");
  if (std::ranges::any_of(codelet.access, [](Access a) { return a >= Access::commute; }))
    refuse("its operands are read, written or updated, not of mode commute or reduce");
}

/// The parent of what is submitted ends after it: whatever may wait for the parent is refused.
void Engine::Impl::check_after(const Task* parent, std::span<const Future> after) const {
  if (!parent) return;
  const std::uint64_t inside = parent->id.load(std::memory_order_relaxed);
  for (const Future& each : after) {
    const TaskRef ref = EngineAccess::task(each);
    if (!ref.task) continue;
    const Task* const its_parent = ref.task->parent();  // another task's if that has ended
    if (graph.ended(ref) || its_parent == parent) continue;
    bool is_around = false;
    for (const Task* around = parent; around; around = around->parent())
      is_around |= around == ref.task;
    if (ref.id > inside || is_around)
      fail(Errc::invalid_argument,
           fmt::format("a task inside of task {} '{}' can't follow task {}, which may wait for it",
                       inside, parent->codelet->name, ref.id));
  }
}

inline void Engine::Impl::fill(Task& task, const Codelet& codelet,
                               std::span<const Operand> operands, std::span<const std::byte> params,
                               const SubmitOptions& given) {
  Task* const parent = current_task(graph);
  task.codelet = &codelet;
  task.priority = given.priority;
  task.device = given.device;
  task.owner = given.owner;
  task.take_slots(operands.size());
  if (given.sequence) {
    task.has_extra = true;
    task.extra.sequence = EngineAccess::datum(given.sequence);
  }
  if (!given.after.empty()) {
    task.has_extra = true;
    task.extra.after = std::make_unique<std::vector<TaskRef>>();
    for (const Future& each : given.after) task.extra.after->push_back(EngineAccess::task(each));
  }
  task.has_commute = false;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    task.operands[i].datum = EngineAccess::datum(operands[i].data);
    task.operands[i].access = operands[i].access;
    task.has_commute |= operands[i].access >= Access::commute;
  }
  task.has_params = !params.empty();
  if (task.has_params) {
    task.params_bytes = static_cast<std::uint32_t>(params.size());
    std::byte* bytes = task.inline_bytes;
    if (params.size() > Task::inline_params) {
      task.has_extra = true;
      task.extra.params = std::make_unique<std::byte[]>(params.size());
      bytes = task.extra.params.get();
    }
    std::memcpy(bytes, params.data(), params.size());
  }
  task.has_parent.store(parent != nullptr, std::memory_order_release);
  if (parent) task.parent_task.store(parent, std::memory_order_release);
  task.children.store(1, std::memory_order_relaxed);
}

void EngineAccess::refuse(Engine& engine, bool on) noexcept {
  engine.impl_->refuses.store(on, std::memory_order_seq_cst);
}

std::uint64_t EngineAccess::running(const Engine& engine) noexcept {
  const Task* const task = task_around(engine.impl_->graph);
  return task ? task->id.load(std::memory_order_relaxed) : 0;
}

bool EngineAccess::has_room(Engine& engine) { return engine.checked().graph.has_slot(); }

Future Engine::submit(const Codelet& codelet, std::span<const Operand> operands,
                      std::span<const std::byte> params, SubmitOptions options) {
  if (options.owner == pulled_owner) [[unlikely]]
    fail(Errc::invalid_argument,
         fmt::format("the owner of a task of codelet '{}' is {}, which is reserved; expected a "
                     "device, or no_device",
                     codelet.name, options.owner));
  Impl& impl = checked();
  if (impl.others.any()) [[unlikely]]
    impl.others.follow(operands);
  return impl.start(impl.prepare(codelet, operands, params, options), nullptr);
}

// Checks what is submitted, and fills a slot with it.
Task& Engine::Impl::prepare(const Codelet& codelet, std::span<const Operand> operands,
                            std::span<const std::byte> params, const SubmitOptions& given,
                            const std::shared_ptr<Gang>* gang, bool is_another, DeviceSide* side) {
  fetch_ahead(operands);
  check_operands(codelet, operands);
  if (given.sequence && EngineAccess::datum(given.sequence)->engine != this)
    fail(Errc::invalid_argument,
         fmt::format("the sequence of a task of codelet '{}' is not this engine's, or was removed",
                     codelet.name));
  if (is_detached(codelet)) [[unlikely]]
    check_detached(codelet, side != nullptr);
  if (codelet.init || codelet.combine) [[unlikely]]
    Reductions::check(codelet);
  const Task* const parent = current_task(graph);
  if (parent && !parent->codelet->submits)
    fail(Errc::invalid_argument,
         fmt::format("codelet '{}' submits tasks and has to say so: set `submits`; a stage of a "
                     "pipeline can't, and uses another engine",
                     parent->codelet->name));
  if (!given.after.empty()) [[unlikely]]
    check_after(parent, given.after);
  Task* const free = slot(is_another);
  Task& task = free ? *free : await_slot(is_another);
  fill(task, codelet, operands, params, given);
  if (gang) {
    task.has_extra = true;
    task.extra.gang = *gang;
  }
  if (side) {
    task.has_extra = true;
    task.extra.side = side;
  }
  try {
    if (codelet.workspace) [[unlikely]]
      note_workspaces(task, machine);
    executor->check(task);
  } catch (...) {
    drop(task);
    throw;
  }
  return task;
}

void Engine::Impl::drop(Task& prepared) { give_back(graph, &prepared); }

Future Engine::Impl::start(Task& task, TaskGroup* group) {
  enter(task, group);
  std::uint64_t predecessors = 0;
  {
    std::lock_guard lock(graph.submission());
    predecessors = link(task);
  }
  const Future future(&task, task.id.load(std::memory_order_relaxed));
  if ((Graph::unguard(task, predecessors) & 0xffffffff) == 0) executor->ready(task, future.id());
  return future;
}

Future EngineAccess::submit(Engine& engine, const Codelet& codelet,
                            std::span<const Operand> operands, std::span<const std::byte> params,
                            const SubmitOptions& options, TaskGroup* group,
                            std::shared_ptr<void> held, DeviceSide* side) {
  Engine::Impl& impl = engine.checked();
  Task& task = impl.prepare(codelet, operands, params, options, nullptr, false, side);
  if (held) {
    task.has_extra = true;
    task.extra.held = std::move(held);
  }
  return impl.start(task, group);
}

// The task, and then the engine, may end as soon as it is open.
void EngineAccess::reopen(Engine& engine, const TaskRef& task, std::atomic<bool>& open) {
  Executor& executor = *engine.impl_->executor;
  executor.keepers.fetch_add(1, std::memory_order_relaxed);
  open.store(true, std::memory_order_release);
  executor.ready(*task.task, task.id);
  executor.keepers.fetch_sub(1, std::memory_order_release);
}

}  // namespace quadriga
