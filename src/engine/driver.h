// SPDX-License-Identifier: BSD-3-Clause
// src/engine/driver.h: drives a backend's devices: who drives when, and how others reach what is
// driven.
//
// One step is DriverLoop's. Under a real clock the driver has a thread of its own, which sleeps in
// the backend; under the virtual clock whoever waits drives (VirtualDrive).
//
// Invariants
//
//   1. Scheduler, instructions, releases and record belong to the driver's thread; other threads
//      reach them through execute(). Under the virtual clock they belong to who drives.
//
//   2. New data, submitted and ready tasks arrive through the inbox, in order; data before its
//      tasks, a task's submission before its readiness.
#pragma once

#include <quadriga/engine.h>

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "device/backend.h"
#include "engine/device_spaces.h"
#include "engine/driver_devices.h"
#include "engine/driver_loop.h"
#include "engine/executor.h"
#include "engine/inbox.h"
#include "engine/issuers.h"
#include "engine/releases.h"
#include "engine/run_log.h"
#include "engine/run_record.h"
#include "engine/schedule_news.h"
#include "engine/task_bodies.h"
#include "engine/virtual_drive.h"
#include "engine/waiters.h"
#include "graph/failures.h"
#include "graph/graph.h"
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
  bool wait(const std::function<bool()>& condition, Nanoseconds deadline, Checked checked) override;
  bool bring_home(std::span<Datum* const> data, std::span<const TaskRef> after,
                  Nanoseconds deadline) override;
  bool bring_all_home(Nanoseconds deadline) override;
  bool bring_ended_home(Nanoseconds deadline) override;
  bool has_lingering() const noexcept override { return loop_->has_lingering(); }
  bool give_back(std::span<Datum* const> data, bool overwrites, Nanoseconds deadline) override;
  void end_hold(Task& hold, std::span<Datum* const> written,
                std::span<Datum* const> others) override;
  void final(Datum& datum) override;
  void evict(Datum& datum) override;
  std::vector<bool> valid(std::span<Datum* const> data, SpaceId space) const override;
  bool has_come_home(const Datum& datum) const override;
  DeviceServices& devices() noexcept override { return devices_; }
  Nanoseconds now() const override { return backend_->now(); }
  std::uint64_t ended() const override { return releases_.count(); }
  void cancel(bool on) override;
  void count(Counters& counters) const override;
  void reset_counters() override;
  std::string status() const override;

 private:
  ScheduleNews::Promise keep_promise();
  int most_rounds() const noexcept;
  void loop();
  void post(const Message& message);
  /// Runs something on the driver's side, and waits for it.
  void execute(const std::function<void()>& work);
  /// The same whenever something has happened, until it returns true. False at the deadline.
  bool execute_until(const std::function<bool()>& work, Nanoseconds deadline);
  void break_down(std::exception_ptr error);
  VirtualDrive::Hooks hooks();

  /// What has no way home, and why.
  struct Refused {
    std::vector<Datum*> data;
    std::exception_ptr why;
  };
  bool go_home(Datum& datum, Refused& refused);
  template <class Each>
  bool bring_home(std::span<const TaskRef> after, Nanoseconds deadline, Each&& each,
                  Refused& refused);
  bool sleep_until(const std::function<bool()>& condition, Nanoseconds deadline, Checked checked);
  std::string describe() const;

  Graph& graph_;
  const Machine& machine_;
  std::unique_ptr<Backend> backend_;
  const bool virtual_;
  std::unique_ptr<DeviceSpaces> spaces_;
  std::vector<std::size_t> library_bytes_;  ///< By device.
  RunRecord record_;
  RunLog log_;
  Instructions instructions_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<Issuers> issuers_;
  Inbox inbox_;
  Releases releases_;
  Waiters waiters_;
  ScheduleNews news_;
  DriverDevices devices_;

  std::optional<DriverLoop> loop_;
  std::optional<VirtualDrive> drive_;  ///< Under the virtual clock.
  std::atomic<bool> stopping_{false};
  TaskBodies bodies_;
  std::thread thread_;
};

}  // namespace quadriga
