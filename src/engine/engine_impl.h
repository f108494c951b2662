// SPDX-License-Identifier: BSD-3-Clause
// src/engine/engine_impl.h: the parts of an engine and how they are connected.
#pragma once

#include <quadriga/engine.h>

#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "engine/adoption.h"
#include "engine/engine_access.h"
#include "engine/executor.h"
#include "engine/hold.h"
#include "engine/let_go.h"
#include "engine/message_tasks.h"
#include "engine/others.h"
#include "engine/recorder.h"
#include "engine/reductions.h"
#include "engine/renaming.h"
#include "engine/sharing.h"
#include "graph/failures.h"
#include "graph/graph.h"

namespace quadriga {

/// What is registered.
struct NewDatum {
  SpaceId space = host_space;
  std::byte* home = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t ld = 0;
  DType dtype = DType::bytes;
  bool keep = false;
  bool resident = false;
  bool is_private = false;
  CopyWatch* watch = nullptr;
};

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
  /// A slot for data, or for a sequence. Called with data_mutex held, as give_back() is.
  Datum& take_datum();
  void give_back(Datum& datum);
  Datum& add(const NewDatum& given);
  Datum& make(const NewDatum& given);
  void remove(std::span<const Data> data, bool discard);
  std::vector<Datum*> drop_registrations(std::span<Datum* const> given);
  std::vector<Datum*> pin(const std::function<void(std::vector<Datum*>&)>& find,
                          Nanoseconds deadline);
  std::vector<Datum*> pin_aliases(const Datum& datum, bool await, Nanoseconds deadline);
  void unpin(std::span<Datum* const> given);
  void forget(std::span<Datum* const> leaving);
  /// Waits until the host may touch these data, and aliases of theirs.
  std::shared_ptr<Hold> hold(std::vector<HeldDatum> wanted, Nanoseconds deadline,
                             bool names_lost = false, bool passes = false);
  std::vector<HeldDatum> held_by(std::thread::id thread);
  /// Whether the thread has an access on the host that hasn't ended.
  bool has_access(std::thread::id thread) { return !held_by(thread).empty(); }
  bool begin_hold(Hold& hold, std::span<const HeldDatum> mine, std::vector<TaskRef>& conflicts);
  void await_turn(const Hold& hold, const std::vector<TaskRef>& conflicts, Nanoseconds deadline);
  void settle_hold(Hold& hold, Nanoseconds deadline);
  std::vector<Datum*> registered_since(const Hold& hold);
  bool are_home(std::span<Datum* const> all);
  void end_hold(Hold& hold);
  void end_holds();
  /// Throws unavailable if tasks, or this one, wait for an access of this thread's, which would
  /// wait for them.
  void refuse_own_holds(const TaskRef* task = nullptr);
  void wait_all(double timeout);
  void settle();
  void settle_renamed();
  void begin_cancelling();
  void end_cancelling();
  void cancel_all(Task* inside);
  void wait_data(Datum& datum, double timeout);
  void wait_data(Datum& datum, std::span<Datum* const> aliases, Nanoseconds deadline);
  void wait_task(const TaskRef& ref, double timeout);
  void wait_ended(const std::vector<TaskRef>& tasks, Nanoseconds deadline);
  /// Waits for a condition that follows from ends of tasks; throws deadline with the state
  /// of things.
  void wait_until(const std::function<bool()>& condition, Nanoseconds deadline,
                  const std::string& what);
  void bring_home(std::span<Datum* const> written, Nanoseconds deadline);
  void bring_renamed_home(std::span<Datum* const> written, Nanoseconds deadline);
  Nanoseconds deadline_after(double timeout) const;
  [[noreturn]] void fail_late(const std::string& what) const;
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
  Graph graph;
  Failures failures;
  Recorder recorder;
  AdoptedEvents adopted;
  std::unique_ptr<Executor> executor;
  std::optional<Reductions> reductions;
  std::optional<Sharing> sharing;
  std::optional<Renaming> renaming;
  bool on_host = false;
  Others others{*this};
  std::atomic<bool> refuses{false};  ///< Tasks, for the engine is about to end.

  std::mutex cancel_mutex;  ///< Of who cancels from outside of tasks; before all others.
  std::mutex cancelling_mutex;
  int cancelling = 0;     ///< Calls of cancel() that go on; guarded by cancelling_mutex.
  std::mutex data_mutex;  ///< Guards the members below, and the regions of `sharing`.
  std::deque<Datum> data;
  Datum* free_data = nullptr;
  FreeSlots unused_slots;  ///< Slots of tasks that were refused, and of holds that have ended.
  std::vector<std::shared_ptr<Hold>> holds;
  std::atomic<std::size_t> held{0};  ///< How many there are; read without the lock.

  std::unique_ptr<MessageTasks> messages;  ///< Null until a task is a message.

  Left left;  ///< By bodies.

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

/// The host's access to whatever is registered in some memory; null: nothing is, or this thread is
/// in a body.
std::shared_ptr<Hold> hold_regions(EngineAccess::Impl& engine, std::span<const HeldRegion> regions,
                                   Nanoseconds deadline, bool names_lost, bool passes = false);

}  // namespace quadriga
