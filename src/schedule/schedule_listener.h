// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/schedule_listener.h: what a scheduler tells whoever carries out its decisions.
//
// Nothing comes back by these calls, and none of them may call the scheduler: what follows from
// them arrives as events, after the scheduler's function has returned.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "device/backend.h"
#include "memory/memory.h"
#include "schedule/plan.h"

namespace quadriga {

enum class Mark : std::uint8_t { hit, miss, prefetch, evict, write_back, steal };

/// A copy that has ended.
struct EndedCopy {
  Reason reason = Reason::stage;
  TileId tile = no_tile;
  SpaceId from = host_space;
  SpaceId to = host_space;
  std::size_t bytes = 0;
  bool goes_home = false;  ///< It was a write-back.
  Datum* datum = nullptr;  ///< Whose tile it is; null if that is forgotten.
};

/// A task that has left the schedule; its record may be another's by now.
struct EndedTask {
  Task* task = nullptr;
  Edge* released = nullptr;  ///< As PlannedTask's.
  DeviceId device = no_device;
  Nanoseconds path = 0;  ///< Longest chain of kernel times that ends with it.
};

class ScheduleListener {
 public:
  virtual ~ScheduleListener() = default;
  /// The task's operations are among the instructions: devices may begin its successors behind
  /// their events.
  virtual void issued(PlannedTask& planned) = 0;
  virtual void ended(const EndedTask& ended) = 0;
  /// It has run on a device, and goes on (DeviceSide::go_on).
  virtual void detached(PlannedTask& /*planned*/) {}
  /// Why a task fails; null: it is cancelled or its result is invalid, as an operand's producer
  /// failed.
  virtual void failed(Task& task, std::exception_ptr error, DeviceId device) = 0;
  /// A datum's content was lost, which no task is to blame for.
  virtual void content_lost(Datum& datum, std::exception_ptr error) = 0;
  /// A device is lost; what follows from that is told afterwards.
  virtual void device_lost(DeviceId device) = 0;
  /// For people: something that the log shall say.
  virtual void noticed(std::string text) = 0;

  // To be counted, and for traces.
  virtual void marked(DeviceId device, Mark mark, TileId tile, std::uint64_t task) = 0;
  virtual void copied(const EndedCopy& copy, const Completion& completion) = 0;
  virtual void ran(const PlannedTask& planned, const Completion& completion) = 0;
  /// Nothing queued touches a device's block any more.
  virtual void freed(SpaceId space, std::byte* block, std::size_t bytes) = 0;
};

/// Runs the variant of an issued task, on a thread of a backend.
class TaskRunner {
 public:
  virtual ~TaskRunner() = default;
  virtual void run(const PlannedTask& planned, const Arguments& arguments) = 0;
};

}  // namespace quadriga
