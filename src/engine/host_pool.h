// SPDX-License-Identifier: BSD-3-Clause
// src/engine/host_pool.h: runs tasks on the host's cores, on the user's memory: one worker thread
// per core.
//
// Invariants
//   1. A ready task is in exactly one place: in `queues_`, or blocked in `commuting_`.
//   2. A worker's counters and free slots are its own; guest_lock_ guards the guest's (those of
//      submitters that execute tasks while the window is full). Threads that keep promises have
//      none of these: what the guest runs may wait for them.
//   3. Fine tasks of divided tasks are in `crew_` only; a worker takes them when it finds no task.
//   4. Waiters are signalled when workers run out of work, and when a promise is fulfilled.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/commuting.h"
#include "engine/crew.h"
#include "engine/home_buffers.h"
#include "engine/host_bodies.h"
#include "engine/one_memory.h"
#include "engine/recorder.h"
#include "engine/waiters.h"
#include "engine/worker_queues.h"
#include "graph/failures.h"
#include "graph/graph.h"

namespace quadriga {

struct HostPoolOptions {
  int workers = 1;
  std::string policy;
  std::uint64_t seed = 1;
  std::size_t buffer_bytes = SIZE_MAX;  ///< Most memory, or disk, for tiles without a home.
  std::string spill = {};               ///< A file that holds them instead of memory.
  std::size_t blocking_threads = 64;
  bool divide = true;  ///< Codelets that say how they divide may be.
};

class HostPool final : public OneMemory {
 public:
  HostPool(Graph& graph, Failures& failures, Recorder& recorder, const Machine& machine,
           const HostPoolOptions& options);
  ~HostPool() override;

  void add(Datum& datum) override;
  void remove(std::span<Datum* const> data) override;
  void check(const Task& task) override;
  void ready(Task& task, std::uint64_t id) override;
  void kept(Task& task, std::uint64_t id, std::exception_ptr error) override;
  bool help() override;
  bool wait(const std::function<bool()>& condition, Nanoseconds deadline, Checked checked) override;
  bool bring_home(std::span<Datum* const>, std::span<const TaskRef> after,
                  Nanoseconds deadline) override;
  void end_hold(Task& hold, std::span<Datum* const> written,
                std::span<Datum* const> others) override;
  Nanoseconds now() const override;
  std::uint64_t ended() const override;
  void count(Counters& counters) const override;
  void reset_counters() override;
  std::string status() const override;

 private:
  struct alignas(64) Worker {
    FreeSlots free;
    std::size_t index = 0;  ///< Its place in `queues_`.
    int lane = 0;
    Nanoseconds since = 0;    ///< Begin of the busy period.
    std::uint64_t tasks = 0;  ///< Of the busy period, not yet given to the recorder.
    alignas(64) std::atomic<std::uint64_t> ended{0};
    std::thread thread;
  };

  void loop(Worker& self);
  void stop() noexcept;
  Task* find(Worker& self);
  void idle(Worker& self);
  void settle(Worker& self);
  /// Runs a task to its end; returns a successor to run next, or null.
  Task* run(Worker& self, Task& task);
  void execute(Worker& self, Task& task);
  Task* finish(Worker& self, Task& task);
  void push(const Worker& to, Task& task) { queues_.push(to.index, task); }
  bool wait_inside_task(const std::function<bool()>& condition, Nanoseconds deadline);
  Worker* own() const noexcept;
  Crew::Hooks crew_hooks(bool divide);
  void note(const FineStretch& stretch);

  Graph& graph_;
  Recorder& recorder_;
  const Machine& machine_;
  Nanoseconds start_;
  std::vector<std::unique_ptr<Worker>> workers_;  ///< The last one is the guest.
  SpinLock guest_lock_;
  std::atomic<std::uint64_t> kept_{0};  ///< Tasks that threads ended which are no workers.

  WorkerQueues queues_;
  Crew crew_;
  Waiters waiters_;
  Commuting commuting_;
  HomeBuffers buffers_;
  HostBodies bodies_;
};

}  // namespace quadriga
