// SPDX-License-Identifier: BSD-3-Clause
// src/engine/driver.h: drives a backend's devices: an inbox, a clock and a loop around the
// scheduler, which decides, and the issuers, which carry out.
//
// Under a real clock the driver has a thread of its own, which sleeps in the backend; under the
// virtual clock step() is called by whoever waits, and time passes only there.
//
// Invariants
//
//   1. Scheduler, instructions, releases and record belong to the driver's thread; other threads
//      reach them through execute(). Under the virtual clock they belong to the holder of
//      `driving_`.
//
//   2. New data, submitted and ready tasks arrive through the inbox, in order; data before its
//      tasks, a task's submission before its readiness.
//
//   3. Notifications from the scheduler are recorded and settled after its function has returned:
//      the graph is updated, and the consequences reach the scheduler as events.
//
//   4. Waiters are signalled after each batch of completions.
#pragma once

#include <quadriga/engine.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "device/backend.h"
#include "engine/executor.h"
#include "engine/inbox.h"
#include "engine/issuers.h"
#include "engine/log_claim.h"
#include "engine/releases.h"
#include "engine/run_record.h"
#include "engine/schedule_news.h"
#include "engine/task_bodies.h"
#include "engine/waiters.h"
#include "graph/failures.h"
#include "graph/graph.h"
#include "memory/device_spaces.h"
#include "schedule/scheduler.h"

namespace quadriga {

class Driver final : public Executor {
 public:
  Driver(Graph& graph, Failures& failures, Recorder& recorder, const Machine& machine,
         const EngineOptions& options, std::unique_ptr<Backend> backend);
  ~Driver() override;

  void add(Datum& datum) override;
  void remove(std::span<Datum* const> data) override;
  void check(const Task& task) override { scheduler_->feasibility().check(task); }
  std::vector<bool> partial_places(const Codelet& codelet, const Datum& target) const override {
    return scheduler_->feasibility().partial_places(codelet, target);
  }
  void submitted(Task& task) override;
  void ready(Task& task, std::uint64_t id) override;
  void kept(Task& task, std::uint64_t id, std::exception_ptr error) override;
  bool help() override;
  bool wait(const std::function<bool()>& condition, Nanoseconds deadline) override;
  bool bring_home(std::span<Datum* const> data, std::span<const TaskRef> after,
                  Nanoseconds deadline) override;
  bool bring_all_home(Nanoseconds deadline) override;
  bool give_back(std::span<Datum* const> data, bool overwrites, Nanoseconds deadline) override;
  void end_hold(Task& hold, std::span<Datum* const> written,
                std::span<Datum* const> others) override;
  void final(Datum& datum) override;
  void evict(Datum& datum) override;
  std::vector<bool> valid(std::span<Datum* const> data, SpaceId space) const override;
  bool has_come_home(const Datum& datum) const override;
  bool is_lost(DeviceId device) const override { return news_.is_lost(device); }
  std::size_t memory_bytes(DeviceId device) const override;
  std::size_t reserve_bytes(DeviceId device) const override {
    return spaces_->reserve_bytes(machine_.devices[device].space);
  }
  DeviceId holder(const void* memory) const override { return backend_->holder(memory); }
  void synchronize(DeviceId device, std::uintptr_t stream) const override {
    backend_->synchronize(device, stream);
  }
  std::unique_ptr<ForeignEvent> mark(DeviceId device, std::uintptr_t stream) const override {
    return backend_->mark(device, stream);
  }
  bool pin(std::byte* memory, std::size_t bytes) override { return backend_->pin(memory, bytes); }
  void unpin(std::byte* memory, std::size_t bytes) noexcept override {
    backend_->unpin(memory, bytes);
  }
  Nanoseconds now() const override { return backend_->now(); }
  std::uint64_t ended() const override { return releases_.count(); }
  void cancel(bool on) override;
  void count(Counters& counters) const override;
  void reset_counters() override;
  std::string status() const override;

 private:
  std::vector<std::vector<StreamId>> open_streams();
  void open_log(const EngineOptions& options, const MemoryOptions& memory,
                std::span<const std::vector<StreamId>> kernel_streams);
  ScheduleNews::Promise keep_promise();
  int most_rounds() const noexcept;
  void loop();
  void post(const Message& message);
  /// Runs something on the driver's side, and waits for it.
  void execute(const std::function<void()>& work);
  /// The same whenever something has happened, until it returns true. False at the deadline.
  bool execute_until(const std::function<bool()>& work, Nanoseconds deadline);
  /// False if none was answered.
  bool run_requests();
  void break_down(std::exception_ptr error);
  /// Takes messages, decides, then takes completions until the deadline. False if nothing happened
  /// and nothing is in flight.
  bool step(Nanoseconds deadline);
  bool drive(Nanoseconds deadline);
  void take_messages();
  void take(const Message& message);
  Cost cost_of(const Task& task);
  bool decide();
  std::size_t take_completions(Nanoseconds deadline);
  /// Tells the graph what happened, and lets the issuers have what was decided.
  void settle();

  bool go_home(Datum& datum, std::exception_ptr& refusal);
  template <class Each>
  bool bring_home(std::span<const TaskRef> after, Nanoseconds deadline, Each&& each);
  bool await_others();
  bool await_submission(int& idle);
  bool make_room(DeviceId device);
  bool drive_until(const std::function<bool()>& condition, Nanoseconds deadline);
  bool sleep_until(const std::function<bool()>& condition, Nanoseconds deadline);
  std::string describe() const;

  Graph& graph_;
  const Machine& machine_;
  std::unique_ptr<Backend> backend_;
  const bool virtual_;
  std::unique_ptr<DeviceSpaces> spaces_;
  std::vector<std::size_t> library_bytes_;  ///< By device.
  RunRecord record_;
  LogClaim log_claim_;
  std::ofstream log_file_;
  std::unique_ptr<ScheduleLog> log_;  ///< As the setting schedule_log says; null: none.
  Instructions instructions_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<Issuers> issuers_;
  Inbox inbox_;
  Releases releases_;
  Waiters waiters_;
  ScheduleNews news_;

  std::vector<Completion> completions_;
  std::vector<Message> taken_;
  std::vector<View> views_;  ///< Scratch of cost_of().

  mutable std::recursive_mutex driving_;  ///< Virtual clock only: invariant 1.
  std::uint64_t steps_ = 0;  ///< Under the virtual clock, by whoever waited; guarded by `driving_`.
  bool is_cancelled_ = false;  ///< As the scheduler was told last; it follows cancel().
  std::atomic<bool> stopping_{false};
  TaskBodies bodies_;
  std::thread thread_;
};

}  // namespace quadriga
