// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/pipeline_stats.h: a pipeline's statistics of a run, and estimates.
#pragma once

#include <quadriga/chunk.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

namespace quadriga {

/// Statistics of a stage so far. Seconds are by the engine's clock.
struct StageStats {
  std::string name;
  std::string kind;  ///< "source", "copy in", "kernel", "copy out", "parallel", "serial", ...
  std::uint64_t chunks = 0;
  double busy_seconds = 0;     ///< Sum of the times in which it processed chunks.
  double waiting_seconds = 0;  ///< Sum of the times that chunks waited for it.
  double acquire_seconds = 0;  ///< Sum of the times without input.
  double reserve_seconds = 0;  ///< Sum of the times without room for its output.
  double occupancy = 0;        ///< busy_seconds / (elapsed * how many it can process at once).
  std::size_t queue = 0;       ///< Chunks currently waiting for it.
  double mean_queue = 0;       ///< The mean over the run so far.
  double chunks_per_second = 0;
  double latency_median = 0;  ///< Seconds that a chunk waited for the stage and spent in it.
  double latency_99 = 0;
};

struct PipelineStats {
  std::vector<StageStats> stages;
  std::uint64_t chunks = 0;    ///< Chunks that have arrived as results.
  std::uint64_t ended = 0;     ///< Chunks of the source that have ended, with what became of them.
  std::uint64_t failed = 0;    ///< Chunks skipped after a failure.
  std::uint64_t dropped = 0;   ///< Chunks dropped by a filter.
  std::uint64_t missed = 0;    ///< Chunks dropped at the source, for which there was no room.
  std::uint64_t repeated = 0;  ///< Runs of chunks that began again, since their device was lost.
  double seconds = 0;          ///< Since the start of the run.
  double bound_seconds = 0;    ///< The least time for these chunks on this machine; 0: unknown.
  std::string limit;           ///< What bounds it: "copies to gpu0", "kernels of gpu1", ...
  double latency_median = 0;   ///< Seconds from the source to the result.
  double latency_99 = 0;
  std::size_t most_host_bytes = 0;  ///< Peak host memory of chunks in progress.
  std::vector<std::uint64_t> by_device;
  int most_on_device = 0;  ///< Maximum number of chunks on one device so far.
};

/// The least time of a run; see Pipeline::estimate().
struct PipelineEstimate {
  double seconds = 0;          ///< The bound.
  std::string limit;           ///< What bounds it.
  double without_limit = 0;    ///< The bound if the limiting resource were twice as fast.
  double one_device_more = 0;  ///< The bound with one more like the last; shared links stay.
  std::vector<double> shares;  ///< Of the work, by device.
};

/// A chunk that was skipped.
struct ChunkFailure {
  ChunkId chunk;
  std::string stage;
  std::exception_ptr error;
};

}  // namespace quadriga
