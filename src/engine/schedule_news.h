// SPDX-License-Identifier: BSD-3-Clause
// src/engine/schedule_news.h: passes on what the scheduler tells: to the graph by the releases, to
// the record, to failures, to who watches data, and to people.
//
// Belongs to the driver's thread, except is_lost().
//
// Invariants
//   1. Nothing here calls the scheduler. What follows for it is noted (Releases) or posted, and
//      reaches it as an event once its function has returned.
//   2. Each failure has one reader: the task's, or the data's watch, or else the next wait.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <utility>

#include "engine/device_spaces.h"
#include "engine/releases.h"
#include "engine/run_record.h"
#include "engine/waiters.h"
#include "graph/failures.h"
#include "schedule/schedule_listener.h"

namespace quadriga {

class ScheduleNews final : public ScheduleListener {
 public:
  struct Readers {
    Failures& failures;
    RunRecord& record;
    Releases& releases;
    Waiters& waiters;
  };
  using Promise = std::function<void(Task&)>;

  /// `promise`: where bodies aren't run, keeps the promise of a detached task; null: they are run.
  /// `go_on`: lets a task that ran on a device go on (device_side.h).
  /// `poisons`: blocks of emulated devices are overwritten once they are given back.
  ScheduleNews(const Machine& machine, const DeviceSpaces& spaces, const Readers& readers,
               Promise promise, bool poisons, Promise go_on = {})
      : machine_(machine),
        spaces_(spaces),
        readers_(readers),
        promise_(std::move(promise)),
        go_on_(std::move(go_on)),
        poisons_(poisons) {}

  /// Any thread.
  bool is_lost(DeviceId device) const noexcept { return lost_.load() >> device & 1; }

  void issued(PlannedTask& planned) override { readers_.releases.issued(planned); }
  void ended(const EndedTask& ended) override { readers_.releases.ended(ended); }
  void detached(PlannedTask& planned) override { go_on_(*planned.task); }
  void failed(Task& task, std::exception_ptr error, DeviceId device) override;
  void content_lost(Datum& datum, std::exception_ptr error) override;
  void device_lost(DeviceId device) override { lost_.fetch_or(std::uint64_t{1} << device); }
  void noticed(std::string text) override { readers_.waiters.notice(std::move(text)); }
  void marked(DeviceId device, Mark mark, TileId tile, std::uint64_t task) override {
    readers_.record.marked(device, mark, tile, task);
  }
  void copied(const EndedCopy& copy, const Completion& completion) override;
  void ran(const PlannedTask& planned, const Completion& completion) override;
  void freed(SpaceId space, std::byte* block, std::size_t bytes) override;

 private:
  const Machine& machine_;
  const DeviceSpaces& spaces_;
  const Readers readers_;
  const Promise promise_;
  const Promise go_on_;
  const bool poisons_;
  std::atomic<std::uint64_t> lost_{0};  ///< Devices, a bit each; there are as many as spaces.
};

}  // namespace quadriga
