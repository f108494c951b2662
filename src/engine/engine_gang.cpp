// SPDX-License-Identifier: BSD-3-Clause
// src/engine/engine_gang.cpp: submitting tasks that start together.
#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "engine/engine_access.h"
#include "engine/engine_impl.h"

namespace quadriga {
namespace {

void check_alone(const Machine& machine, const GangTask& task) {
  const Codelet& codelet = *task.codelet;
  if (task.device >= machine.devices.size())
    fail(Errc::invalid_argument,
         fmt::format("a task of codelet '{}' that starts together with others names its device, 0 "
                     "to {}; got {}",
                     codelet.name, machine.devices.size() - 1,
                     task.device == no_device ? "none" : std::to_string(task.device)));
  const bool ends_alone =
      !codelet.submits && !is_detached(codelet) &&
      std::ranges::none_of(codelet.access, [](Access a) { return a >= Access::commute; });
  if (!ends_alone)
    fail(Errc::invalid_argument,
         fmt::format("tasks of codelet '{}' can't start together with others: expected one that "
                     "neither submits, detaches nor blocks, with operands of mode read, write or "
                     "update",
                     codelet.name));
}

/// One would wait for the other's end, which waits for its start. Two that overlap otherwise than
/// by being the same are brought home in between.
void check_pair(const Sharing& sharing, const GangTask& one, const GangTask& other) {
  if (one.device == other.device)
    fail(Errc::invalid_argument,
         fmt::format("tasks that start together are on different devices; two are on device {}",
                     one.device));
  for (const Operand& a : one.operands)
    for (const Operand& b : other.operands) {
      const Datum& x = *EngineAccess::datum(a.data);
      const Datum& y = *EngineAccess::datum(b.data);
      const bool is_same = &x == &y;
      if (is_same ? writes(a.access) || writes(b.access) : sharing.overlap(x, y))
        fail(Errc::invalid_argument,
             fmt::format("tasks that start together share memory, and one would have to end before "
                         "the other: {}, and {}",
                         text_of(x), text_of(y)));
    }
}

}  // namespace

std::vector<Future> EngineAccess::submit_together(Engine& engine, std::span<const GangTask> tasks,
                                                  const std::shared_ptr<Gang>& gang,
                                                  TaskGroup* group) {
  Engine::Impl& impl = engine.checked();
  require(gang && gang->size == tasks.size(), "expected as many tasks as their gang was made for");
  for (const GangTask& task : tasks) {
    check_alone(impl.machine, task);
    impl.check_operands(*task.codelet, task.operands);
    for (const GangTask* other = tasks.data(); other != &task; ++other)
      check_pair(*impl.sharing, *other, task);
  }
  std::vector<Task*> prepared;
  try {
    for (const GangTask& task : tasks) {
      SubmitOptions options;
      options.device = task.device;
      prepared.push_back(&impl.prepare(*task.codelet, task.operands, task.params, options, &gang,
                                       !prepared.empty()));
    }
  } catch (...) {
    for (Task* const task : prepared) impl.drop(*task);
    throw;
  }
  for (Task* const task : prepared) impl.enter(*task, group);
  std::vector<std::uint64_t> predecessors;
  std::vector<Future> futures;
  {
    // No other task comes between them, which could follow one and be followed by another.
    std::lock_guard lock(impl.graph.submission());
    for (Task* const task : prepared) {
      predecessors.push_back(impl.link(*task));
      futures.push_back(Future(task, task->id.load(std::memory_order_relaxed)));
    }
  }
  for (std::size_t i = 0; i < prepared.size(); ++i)
    if ((Graph::unguard(*prepared[i], predecessors[i]) & 0xffffffff) == 0)
      impl.executor->ready(*prepared[i], futures[i].id());
  return futures;
}

}  // namespace quadriga
