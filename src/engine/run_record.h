// SPDX-License-Identifier: BSD-3-Clause
// src/engine/run_record.h: records device activity from the scheduler: in the recorder by lanes,
// and as totals of the run. The driver's thread only.
#pragma once

#include <vector>

#include "engine/recorder.h"
#include "schedule/schedule_listener.h"

namespace quadriga {

class RunRecord {
 public:
  RunRecord(Recorder& recorder, const Machine& machine, const Backend& clock)
      : recorder_(recorder),
        machine_(machine),
        clock_(clock),
        lane_of_device_(machine.devices.size(), -1) {}

  /// `kind`: what its lane shows. The first compute stream's lane is its device's.
  void open(DeviceId device, StreamId stream, StreamKind kind, std::string name);
  /// By stream.
  const std::vector<DeviceId>& device_of_stream() const noexcept { return device_of_stream_; }

  /// A task was.
  void submitted() {
    if (first_ < 0) first_ = clock_.now();
  }
  void marked(DeviceId device, Mark mark, TileId tile, std::uint64_t task);
  void copied(const EndedCopy& copy, const Completion& completion);
  /// Its kernel has ended, or it was skipped.
  void ran(const PlannedTask& planned, const Completion& completion);

  void count(Counters& counters) const;
  void reset();

 private:
  Recorder& recorder_;
  const Machine& machine_;
  const Backend& clock_;
  std::vector<int> lane_of_stream_;
  std::vector<DeviceId> device_of_stream_;
  std::vector<int> lane_of_device_;
  Nanoseconds longest_path_ = 0;
  Nanoseconds work_ = 0;
  Nanoseconds first_ = -1;  ///< When the first task was submitted; -1: none was.
  Nanoseconds last_end_ = 0;
};

}  // namespace quadriga
