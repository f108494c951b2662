// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/pipeline_stats.h: what a pipeline tells of a run, and of one to come.
#pragma once

#include <quadriga/chunk.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

namespace quadriga {

/// What a stage did so far. Seconds are of the engine's clock.
struct StageStats {
  std::string name;
  std::string kind;  ///< "source", "copy in", "kernel", "copy out", "parallel", "serial", ...
  std::uint64_t chunks = 0;
  double busy_seconds = 0;     ///< Sum of the times in which it processed chunks.
  double waiting_seconds = 0;  ///< Sum of the times that chunks waited for it.
  double acquire_seconds = 0;  ///< Sum of the times in which it had nothing to process.
  double reserve_seconds = 0;  ///< Sum of the times in which it had no room for what it makes.
  double occupancy = 0;        ///< busy_seconds / (elapsed * how many it can process at once).
  std::size_t queue = 0;       ///< Chunks that wait for it now.
  double mean_queue = 0;       ///< The mean over the run so far.
  double chunks_per_second = 0;
  double latency_median = 0;  ///< Seconds of a chunk, waiting for it and in it.
  double latency_99 = 0;
};

struct PipelineStats {
  std::vector<StageStats> stages;
  std::uint64_t chunks = 0;   ///< That have arrived as results.
  std::uint64_t failed = 0;   ///< Skipped.
  std::uint64_t dropped = 0;  ///< By a filter.
  double seconds = 0;         ///< Since the run began.
  double bound_seconds = 0;   ///< The least time for these chunks on this machine; 0: unknown.
  std::string limit;          ///< What bounds it: "copies to gpu0", "kernels of gpu1", ...
  double latency_median = 0;  ///< Seconds from the source to the result.
  double latency_99 = 0;
  std::size_t most_host_bytes = 0;  ///< Of chunks on their way, at most so far.
  std::vector<std::uint64_t> by_device;
  int most_on_device = 0;  ///< Chunks in flight on one device, at most so far.
};

/// What a run would take at least; see Pipeline::estimate().
struct PipelineEstimate {
  double seconds = 0;        ///< The bound.
  std::string limit;         ///< What bounds it.
  double without_limit = 0;  ///< The bound if what limits were twice as fast.
  double one_device_more =
      0;  ///< The bound with another device like the last, on links of its own.
  std::vector<double> shares;  ///< Of the work, by device.
};

/// A chunk that was skipped.
struct ChunkFailure {
  ChunkId chunk;
  std::string stage;
  std::exception_ptr error;
};

}  // namespace quadriga
