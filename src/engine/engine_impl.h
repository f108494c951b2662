// SPDX-License-Identifier: BSD-3-Clause
// src/engine/engine_impl.h: the parts of an engine and how they are connected.
//
// Invariants
//   1. Each part knows those above it only. What several threads share is guarded by the part that
//      has it, see there.
//   2. Locks are taken in this order: Cancelling's turn, that of Registrations, the submission
//      lock, the graph's of free slots. OpenHolds' and messages_mutex are taken last; that of the
//      calls of Cancelling after its turn; the driver is asked under it.
#pragma once

#include <quadriga/engine.h>

#include <memory>
#include <mutex>

#include "engine/adoption.h"
#include "engine/cancelling.h"
#include "engine/engine_access.h"
#include "engine/executor.h"
#include "engine/holds.h"
#include "engine/kept.h"
#include "engine/let_go.h"
#include "engine/message_tasks.h"
#include "engine/others.h"
#include "engine/recorder.h"

namespace quadriga {

struct Engine::Impl {
  Impl(EngineOptions given, const BackendWrap& wrap_backend);
  ~Impl();
  /// Cancels what has not started and waits for the rest; before the engine goes.
  void end() noexcept;

  Task* slot(bool beyond);
  /// Once the window has room. `is_another`: the submitter has slots that it can't use without this
  /// one.
  Task& await_slot(bool is_another);
  // A submission: what prepare() returns is dropped, or entered and then linked, under the
  // submission lock.
  Task& prepare(const Codelet& codelet, std::span<const Operand> operands,
                std::span<const std::byte> params, const SubmitOptions& given,
                const std::shared_ptr<Gang>* gang = nullptr, bool is_another = false,
                DeviceSide* side = nullptr);
  void drop(Task& prepared);
  void enter(Task& prepared, TaskGroup* group);
  /// How many it follows, for Graph::unguard().
  std::uint64_t link(Task& prepared);
  /// Enters and links a task by itself.
  Future start(Task& prepared, TaskGroup* group);
  void fill(Task& task, const Codelet& codelet, std::span<const Operand> operands,
            std::span<const std::byte> params, const SubmitOptions& options);
  static void check_detached(const Codelet& codelet, bool has_side);
  void check_after(const Task* parent, std::span<const Future> after) const;
  void check_operands(const Codelet& codelet, std::span<const Operand> operands) const;
  void check_aliases(const Codelet& codelet, std::span<const Operand> operands) const;
  void wait_all(double timeout);
  void wait_data(Datum& datum, double timeout);
  void wait_data(Datum& datum, std::span<Datum* const> aliases, Nanoseconds deadline);
  void wait_task(const TaskRef& ref, double timeout);
  /// What ended tasks left on devices comes home, see Executor; not in a body.
  void bring_ended_home(double timeout);
  /// The same after a wait, by which the program learns that tasks have ended, well or not.
  template <class Wait>
  void wait_then_bring(double timeout, Wait&& wait);
  void bring_renamed_home(std::span<Datum* const> written, Nanoseconds deadline);
  /// After a wait: ends what bodies have left, if no task is left.
  void end_left();
  /// Null until a task was a message. Any thread.
  MessageTasks* known_messages();
  /// While on, no message of a task goes on.
  void cancel_messages(bool on);

  int owner;  ///< process_id() of the maker.
  EngineOptions options;
  std::optional<Machine> truth;  ///< By which time passes, if plans go by another description.
  Machine machine;
  bool on_host = false;  ///< Tasks run on the host's memory, in the host's pool.
  Graph graph;
  Failures failures;
  Recorder recorder;
  AdoptedEvents adopted;
  std::unique_ptr<Executor> executor;
  std::optional<Reductions> reductions;
  std::optional<Sharing> sharing;
  std::optional<Renaming> renaming;
  Others others{*this};
  std::atomic<bool> refuses{false};  ///< Tasks, for the engine is about to end.

  OpenHolds open_holds{graph};
  std::optional<Waits> waits;
  std::optional<Registrations> registrations;
  std::optional<Holds> holds;
  std::optional<Cancelling> cancelling;

  std::mutex messages_mutex;               ///< Guards this pointer.
  std::unique_ptr<MessageTasks> messages;  ///< Null until a task is a message.

  Left left;  ///< By bodies.
  Kept kept;  ///< By the rooms to the right.

  std::atomic<Nanoseconds> first_submission{-1};
  // At the last reset_counters().
  std::atomic<std::uint64_t> submitted_before{0};
  std::atomic<std::uint64_t> ended_before{0};
  std::atomic<std::uint64_t> failed_before{0};
};

/// An engine's executor for machines with accelerators, or under the virtual clock. Plans go by
/// `machine`, the virtual clock by `truth`.
std::unique_ptr<Executor> make_driver(Graph& graph, Failures& failures, Recorder& recorder,
                                      const Machine& machine, const Machine& truth,
                                      const EngineOptions& options,
                                      const BackendWrap& wrap_backend);

// Each submission calls these two.

inline void Engine::Impl::enter(Task& task, TaskGroup* group) {
  if (first_submission.load(std::memory_order_relaxed) < 0) [[unlikely]]
    first_submission.store(executor->now(), std::memory_order_relaxed);
  task.group = group;
  if (group) group->task_submitted();
  if (Task* const around = task.parent()) around->children.fetch_add(1, std::memory_order_relaxed);
}

inline std::uint64_t Engine::Impl::link(Task& task) {
  renaming->before(task);
  reductions->before(task);
  sharing->before(task);
  const std::uint64_t predecessors = graph.link(task);
  executor->submitted(task);
  if (recorder.tracing()) [[unlikely]]
    recorder.submitted(task, executor->now());
  return predecessors;
}

}  // namespace quadriga
