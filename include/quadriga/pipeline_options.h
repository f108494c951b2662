// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/pipeline_options.h: what is stated of a pipeline as a whole.
#pragma once

#include <quadriga/engine.h>

#include <cstdint>
#include <string>

namespace quadriga {

/// Which of the waiting chunks goes to a device next.
enum class Order : std::uint8_t {
  adaptive,  ///< Two small ones per device, then the largest first, small ones last.
  largest,
  first_come,
  smallest,
};

/// How many chunks a stage on the host processes at once.
enum class StageMode : std::uint8_t {
  parallel,         ///< Several.
  serial,           ///< One.
  serial_in_order,  ///< One, in the source's order.
};

/// How a run reacts when a stage fails.
enum class OnError : std::uint8_t {
  raise,  ///< The chunks before the one that failed arrive, then the failure is raised.
  skip,   ///< The chunk is dropped, its failure is counted and kept, the others continue.
};

/// How a run treats its source while there is no room for another chunk.
enum class OnFull : std::uint8_t {
  wait,  ///< The source isn't called until there is.
  drop,  ///< It is called all the time, as live data require; what doesn't fit is dropped, counted.
};

/// Options of a new pipeline. Empty and zero stand for the default.
struct PipelineOptions {
  std::string memory = {};       ///< Per device, such as "4GiB"; default: all that tiles may use.
  std::string host_memory = {};  ///< For chunks in progress; default: half of the engine's.
  std::string devices = {};      ///< As EngineOptions::devices, for a separate engine.
  Engine* engine = nullptr;      ///< Instead of a separate one; must outlive the pipeline.
  Order order = Order::adaptive;
  OnError on_error = OnError::raise;
  OnFull on_full = OnFull::wait;
  int look_ahead = 64;  ///< Limit of chunks read that are not yet on a device or a result.
  /// The limit L: chunks of a device, in copies or kernels; default: one arriving, one in its
  /// kernels and one leaving; on the host, one per core and one more.
  int most_on_device = 0;
  int most_on_link = 0;  ///< The limit G: copies on a link at once; default: as many as fill it.
  int most_in_all = 0;   ///< The limit M: chunks on all devices.
  int threads = 0;       ///< Limit of concurrent bodies of parallel stages; default: usable cores.
};

}  // namespace quadriga
