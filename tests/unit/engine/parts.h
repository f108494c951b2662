// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/parts.h: the parts of an engine around an executor that runs nothing by itself.
#pragma once

#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "engine/cancelling.h"
#include "engine/holds.h"
#include "engine/one_memory.h"

namespace quadriga {

/// Ends tasks where the test says so; notes what it is told.
class IdleExecutor final : public OneMemory {
 public:
  void add(Datum& datum) override { known.push_back(&datum); }
  void remove(std::span<Datum* const> data) override {
    for (Datum* const each : data) std::erase(known, each);
  }
  void check(const Task&) override {}
  void ready(Task&, std::uint64_t) override {}
  void kept(Task&, std::uint64_t, std::exception_ptr) override {}
  bool help() override { return false; }
  /// False if the condition doesn't hold after `meanwhile`.
  bool wait(const std::function<bool()>& condition, Nanoseconds, Checked) override {
    if (!condition() && meanwhile) meanwhile();
    return condition();
  }
  bool bring_home(std::span<Datum* const>, std::span<const TaskRef>, Nanoseconds) override {
    return true;
  }
  void end_hold(Task& hold, std::span<Datum* const> written, std::span<Datum* const>) override {
    ++ended_holds;
    if (fails) fail(Errc::unavailable, "the executor is broken");
    overwrote.assign(written.begin(), written.end());
    give_back(written, true, never);
    graph->ended(hold, nullptr, [](Task&, std::uint64_t) {});
  }
  Nanoseconds now() const override { return 7'000'000'000; }
  std::uint64_t ended() const override { return ended_tasks; }
  void count(Counters&) const override {}
  void reset_counters() override {}
  std::string status() const override { return "as the test left it"; }

  Graph* graph = nullptr;
  std::function<void()> meanwhile;
  std::vector<Datum*> known;
  std::vector<Datum*> overwrote;
  int ended_holds = 0;
  bool fails = false;  ///< Where the end of an access is told.
  std::uint64_t ended_tasks = 0;
};

/// The parts, on one memory, connected as in an engine.
struct IdleParts {
  IdleParts() { executor.graph = &graph; }

  /// Registers so many numbers.
  Datum& add(double* home, std::int64_t count) {
    return registrations.add({host_space, reinterpret_cast<std::byte*>(home), count, 1, count,
                              DType::float64, false, false, false, nullptr});
  }
  /// Submits a task that accesses a datum; end() ends it.
  TaskRef submit(Datum& datum, Access access) {
    Task& task = *graph.allocate(true);
    task.codelet = &codelet;
    task.has_extra = task.has_params = task.has_commute = false;
    task.has_parent = false;
    task.take_slots(1);
    task.operands[0].datum = &datum;
    task.operands[0].access = access;
    {
      std::lock_guard lock(graph.submission());
      Graph::unguard(task, graph.link(task));
    }
    return {&task, task.id.load()};
  }
  void end(const TaskRef& ref) {
    graph.ended(*ref.task, nullptr, [](Task&, std::uint64_t) {});
    ++executor.ended_tasks;
  }

  Codelet codelet;
  Machine machine = Machine::host();
  Graph graph{64};
  Failures failures;
  IdleExecutor executor;
  Reductions reductions{graph, executor};
  Sharing sharing{graph, executor, failures, machine, true};
  Renaming renaming{graph, executor, sharing, machine, 0};
  OpenHolds open{graph};
  Waits waits{graph, executor, open};
  int before_memory = 0;
  Registrations registrations{{.engine = this,
                               .graph = graph,
                               .executor = executor,
                               .sharing = sharing,
                               .reductions = reductions,
                               .renaming = renaming,
                               .waits = waits,
                               .before_memory = [this] { ++before_memory; }}};
  Holds holds{{.graph = graph,
               .executor = executor,
               .failures = failures,
               .sharing = sharing,
               .reductions = reductions,
               .renaming = renaming,
               .registrations = registrations,
               .waits = waits,
               .open = open,
               .on_host = true}};
  std::atomic<bool> is_ending{false};
  std::vector<bool> told_messages;
  Cancelling cancelling{{.graph = graph,
                         .executor = executor,
                         .failures = failures,
                         .reductions = reductions,
                         .renaming = renaming,
                         .waits = waits,
                         .is_ending = is_ending,
                         .messages = [this](bool on) { told_messages.push_back(on); }}};
};

inline Errc code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return Errc::invalid_argument;
}

}  // namespace quadriga
