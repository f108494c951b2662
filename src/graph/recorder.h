// SPDX-License-Identifier: BSD-3-Clause
// src/graph/recorder.h: counters always, a trace on request; both fed by the same calls.
//
// Each lane (a stream of a device, or a host worker) has one writer. Reading while work goes on
// gives a recent state, reading after wait() the exact one.
#pragma once

#include <quadriga/machine.h>
#include <quadriga/report.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "device/backend.h"
#include "graph/busy_union.h"
#include "graph/task.h"
#include "memory/memory.h"

namespace quadriga {

enum class Mark : std::uint8_t { hit, miss, prefetch, evict, write_back, steal };

struct Record {
  enum class Kind : std::uint8_t { kernel, copy, mark };
  Kind kind = Kind::mark;
  std::uint8_t detail = 0;  ///< Reason or Mark.
  SpaceId from = 0;
  SpaceId to = 0;
  TileId tile = no_tile;
  std::uint64_t task = 0;
  std::uint64_t bytes = 0;
  const Codelet* codelet = nullptr;
  Nanoseconds begin = 0;
  Nanoseconds end = 0;
};

class Recorder {
 public:
  Recorder(const Machine& machine, bool tracing);

  /// A lane of a device; not thread-safe, before work starts.
  int add_lane(DeviceId device, StreamKind kind, std::string name);

  void kernel(int lane, const Task& task, Nanoseconds begin, Nanoseconds end);
  /// Many kernels at once, when nobody traces: only counts.
  void kernels(int lane, std::uint64_t tasks, Nanoseconds busy);
  void copy(int lane, Reason reason, TileId tile, SpaceId from, SpaceId to, std::uint64_t bytes,
            Nanoseconds begin, Nanoseconds end);
  void mark(int lane, Mark mark, TileId tile, std::uint64_t task, Nanoseconds when);
  /// Adds to the device's time with a kernel; by the driver's thread only.
  void computed(DeviceId device, Nanoseconds begin, Nanoseconds end);
  bool tracing() const noexcept { return tracing_; }

  void count(Counters& counters) const;
  void reset();

  /// Events in the form of docs/report.md, as the inside of a JSON array.
  std::string events_json() const;

 private:
  struct alignas(64) Lane {
    DeviceId device = 0;
    StreamKind kind = StreamKind::compute;
    std::string name;
    // Single writer; atomics so that others may read.
    std::atomic<std::uint64_t> tasks{0};
    std::atomic<Nanoseconds> busy{0};
    std::array<std::atomic<std::uint64_t>, 6> marks{};
    std::vector<LinkCounters> links;
    std::vector<Record> records;
  };
  struct DeviceTime {
    BusyUnion copying;
    BusyUnion computing;
    BusyUnion either;
  };
  void log(Lane& lane, const Record& record);
  std::string space_name(SpaceId space) const;
  std::string event_json(const Lane& lane, std::size_t tid, const Record& record) const;

  const Machine& machine_;
  bool tracing_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<DeviceTime> times_;  ///< By device; fed by the driver's thread only.
};

}  // namespace quadriga
