// SPDX-License-Identifier: BSD-3-Clause
// src/engine/run_record.cpp: lanes, and sums.
#include "engine/run_record.h"

#include <algorithm>
#include <utility>

#include "schedule/prediction.h"

namespace quadriga {

void RunRecord::open(DeviceId device, StreamId stream, StreamKind kind, std::string name) {
  if (lane_of_stream_.size() <= stream) {
    lane_of_stream_.resize(stream + 1, -1);
    device_of_stream_.resize(stream + 1, 0);
  }
  const int lane = recorder_.add_lane(device, kind, std::move(name));
  lane_of_stream_[stream] = lane;
  device_of_stream_[stream] = device;
  if (kind == StreamKind::compute && lane_of_device_[device] < 0) lane_of_device_[device] = lane;
}

void RunRecord::marked(DeviceId device, Mark mark, TileId tile, std::uint64_t task) {
  recorder_.mark(lane_of_device_[device], mark, tile, task, recorder_.tracing() ? clock_.now() : 0);
}

void RunRecord::copied(const EndedCopy& copy, const Completion& completion) {
  last_end_ = std::max(last_end_, completion.end);
  if (completion.error) return;
  const int lane = lane_of_stream_[completion.event.stream];
  recorder_.copy(lane, copy.reason, copy.tile, copy.from, copy.to, copy.bytes, completion.begin,
                 completion.end);
  if (copy.goes_home) recorder_.mark(lane, Mark::write_back, copy.tile, 0, completion.end);
}

void RunRecord::ran(const PlannedTask& planned, const Completion& completion) {
  if (planned.state() == TaskState::skipped) {
    const Nanoseconds now = clock_.now();
    return recorder_.kernel(lane_of_device_[planned.device], *planned.task, now, now);
  }
  const Nanoseconds duration = completion.end - completion.begin;
  recorder_.kernel(lane_of_stream_[completion.event.stream], *planned.task, completion.begin,
                   completion.end, recorder_.tracing() ? expected_time(machine_, planned) : 0);
  recorder_.computed(planned.device, completion.begin, completion.end);
  last_end_ = std::max(last_end_, completion.end);
  work_ += duration;
  longest_path_ = std::max(longest_path_, planned.path + duration);
}

void RunRecord::count(Counters& counters) const {
  recorder_.count(counters);
  counters.work_seconds = static_cast<double>(work_) / 1e9;
  counters.critical_path_seconds = static_cast<double>(longest_path_) / 1e9;
  if (first_ >= 0) counters.elapsed = last_end_ - first_;
}

void RunRecord::reset() {
  recorder_.reset();
  longest_path_ = work_ = last_end_ = 0;
  first_ = -1;
}

}  // namespace quadriga
