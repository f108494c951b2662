// SPDX-License-Identifier: BSD-3-Clause
// src/engine/crew.cpp: takes fine tasks, runs them, and ends a divided task after its last one.
#include "engine/crew.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "engine/bodies.h"
#include "graph/task_life.h"

namespace quadriga {
namespace {

thread_local Crew* member_of = nullptr;

template <class Condition>
void spin_until(Condition&& is_met) {
  for (int spins = 0; !is_met(); ++spins)
    if (spins < 200)
      pause_briefly();
    else
      std::this_thread::yield();
}

}  // namespace

Crew* Crew::current() noexcept { return member_of; }

Crew::Member::Member(Crew* crew) noexcept : before_(std::exchange(member_of, crew)) {}
Crew::Member::~Member() { member_of = before_; }

void Crew::run(const Subgraph& graph) {
  Run run{graph, current_task(of_)};
  run.left = graph.size();
  run.waits_for.resize(graph.size());
  // So that ending a task allocates nothing, and can't fail.
  run.ready.reserve(graph.size());
  for (std::size_t i = graph.size(); i-- > 0;) {  // the first one added is taken first
    run.waits_for[i] = graph.predecessors(i);
    if (run.waits_for[i] == 0) run.ready.push_back(static_cast<std::uint32_t>(i));
  }
  const std::size_t at_first = run.ready.size();
  {
    const std::lock_guard lock(lock_);
    open_.push_back(&run);
  }
  ready_.fetch_add(static_cast<std::int64_t>(at_first), std::memory_order_seq_cst);
  for (std::size_t i = 1; i < at_first; ++i) hooks_.added();
  const Nanoseconds begin = hooks_.now();
  std::size_t own = 0;
  spin_until([&] {
    own += work(run, false);
    return run.left.load(std::memory_order_acquire) == 0;
  });
  {
    const std::lock_guard lock(lock_);
    std::erase(open_, &run);
  }
  spin_until([&] { return run.helpers.load(std::memory_order_acquire) == 0; });
  tell(run, own, begin, false);
  if (run.error) std::rethrow_exception(run.error);
}

Crew::Run* Crew::join() {
  const std::lock_guard lock(lock_);
  for (Run* const run : open_) {
    const std::lock_guard of_run(run->lock);
    if (run->ready.empty()) continue;
    run->helpers.fetch_add(1, std::memory_order_relaxed);
    return run;
  }
  return nullptr;
}

bool Crew::help() {
  if (!has_tasks()) return false;
  bool helped = false;
  while (Run* const run = join()) {
    // Nobody was woken for what became ready while this core looked for work.
    if (ready_.load(std::memory_order_relaxed) > 1) hooks_.added();
    const Nanoseconds begin = hooks_.now();
    const std::size_t tasks = work(*run, true);
    tell(*run, tasks, begin, true);
    helped = helped || tasks > 0;
    run->helpers.fetch_sub(1, std::memory_order_release);
    if (hooks_.is_wanted()) break;
  }
  return helped;
}

void Crew::tell(const Run& run, std::size_t tasks, Nanoseconds begin, bool helps) const {
  if (tasks > 0) hooks_.worked({run.task, run.graph.name(), tasks, begin, hooks_.now(), helps});
}

std::size_t Crew::work(Run& run, bool helps) {
  for (std::size_t worked = 0;; ++worked) {
    std::size_t task = 0;
    bool has_failed = false;
    {
      const std::lock_guard lock(run.lock);
      if (run.ready.empty()) return worked;
      has_failed = run.error != nullptr;
      task = run.ready.back();
      run.ready.pop_back();
    }
    ready_.fetch_sub(1, std::memory_order_relaxed);
    if (!has_failed) execute(run, task);
    end(run, task);
    if (helps && hooks_.is_wanted()) return worked + 1;
  }
}

void Crew::execute(Run& run, std::size_t task) {
  try {
    if (hooks_.is_cancelled(run.task)) std::rethrow_exception(work_cancelled());
    const RunningTask running(of_, run.task);
    run.graph.codelet(task).cpu(run.graph.arguments(task));
  } catch (...) {
    const std::lock_guard lock(run.lock);
    if (!run.error) run.error = std::current_exception();
  }
}

void Crew::end(Run& run, std::size_t task) {
  std::int64_t more = 0;
  {
    const std::lock_guard lock(run.lock);
    run.graph.each_successor(task, [&](std::size_t next) {
      if (--run.waits_for[next] > 0) return;
      run.ready.push_back(static_cast<std::uint32_t>(next));
      ++more;
    });
    if (more > 0) ready_.fetch_add(more, std::memory_order_seq_cst);
    // The owner may end the run as soon as it sees 0, once helpers have left.
    run.left.store(run.left.load(std::memory_order_relaxed) - 1, std::memory_order_release);
  }
  for (; more > 1; --more) hooks_.added();  // this core takes one itself
}

}  // namespace quadriga
