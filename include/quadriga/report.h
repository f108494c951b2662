// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/report.h: what an engine counts.
#pragma once

#include <quadriga/types.h>

#include <array>
#include <string>
#include <vector>

namespace quadriga {

/// Traffic from one memory space to another.
struct LinkCounters {
  SpaceId source = host_space;
  SpaceId target = host_space;
  std::uint64_t bytes = 0;
  std::uint64_t copies = 0;
};

struct DeviceCounters {
  std::uint64_t tasks = 0;
  /// Operands that were valid (or in flight) on the device when their task was issued.
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;       ///< Operands that had to be copied then.
  std::uint64_t prefetches = 0;   ///< Copies started before their task was issued.
  std::uint64_t evictions = 0;    ///< Replicas evicted to make room.
  std::uint64_t write_backs = 0;  ///< Copies home.
  std::uint64_t steals = 0;       ///< Tasks taken from another device's or worker's queue.
  std::array<Nanoseconds, 5>
      busy{};               ///< By StreamKind: copy_in, copy_out, peer_in, compute, panel.
  Nanoseconds copying = 0;  ///< Time with at least one copy to or from the device.
  /// Time with at least one kernel; without devices but the host's cores: the sum of their times.
  Nanoseconds computing = 0;
  std::size_t most_bytes = 0;   ///< Peak use of its memory since the engine started.
  Nanoseconds overlap = 0;      ///< Time with both.
  std::size_t arena_bytes = 0;  ///< Of its memory, allocated for tiles; may be less than requested.
  /// Memory that libraries took, before the arena, on a device short of memory.
  std::size_t library_bytes = 0;
};

/// What renaming did (EngineOptions::renaming_bytes).
struct RenamingCounters {
  std::uint64_t renamed = 0;   ///< Writes that got other memory than what they overwrite.
  std::uint64_t refused = 0;   ///< Writes that wait for readers, as the memory was used up.
  std::uint64_t copied = 0;    ///< Copies of renamed content home.
  std::size_t most_bytes = 0;  ///< Peak of the memory.
};

/// Totals since the engine started or reset_counters().
struct Counters {
  std::vector<LinkCounters> links;
  std::vector<DeviceCounters> devices;
  std::uint64_t submitted = 0;
  std::uint64_t ended = 0;
  std::uint64_t failed = 0;
  Nanoseconds elapsed = 0;  ///< From the first submission to the last end.
  /// Peak size of the host buffers (on cores alone, the file) for tiles without a home.
  std::size_t spill_bytes = 0;
  double work_seconds = 0;  ///< Sum of kernel times.
  /// Longest chain of dependent kernels, by their times; on cores alone only with a trace.
  double critical_path_seconds = 0;
  RenamingCounters renaming = {};

  /// Bytes between the host and devices, both ways.
  std::uint64_t host_bytes() const noexcept;
  /// Bytes over all links.
  std::uint64_t bytes() const noexcept;
};

}  // namespace quadriga
