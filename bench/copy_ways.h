// SPDX-License-Identifier: BSD-3-Clause
// bench/copy_ways.h: the kinds of copies that a machine has, and why it lacks the others.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "copy_flows.h"

namespace quadriga::bench {

/// Who makes a copy.
enum class Maker {
  engine,           ///< The engine's backend; CUDA alone is its reference.
  plain,            ///< CUDA alone: the engine has no such copies.
  plain_peers_off,  ///< The same while no device may see another's memory.
};

/// Copies that run at once.
struct Way {
  std::string kind;
  std::string from;  ///< Names of memories: "host", "gpu0", "all".
  std::string to;
  Maker maker = Maker::engine;
  std::vector<Flow> flows = {};
  std::string left_out = {};  ///< Why it can't be measured here; empty if it can.
};

/// All kinds: what they are is in docs/benchmarks.md.
inline constexpr std::string_view copy_kinds[] = {
    "h2d",  "d2h",       "both",     "pageable-h2d", "pageable-d2h", "runs-h2d", "runs-d2h", "same",
    "peer", "peer-both", "peer-off", "all-h2d",      "all-d2h",      "all-both", "all-peer", "ipc"};

/// The ways of a kind on the backend's devices; never none, and never for "ipc".
std::vector<Way> ways_of(std::string_view kind, const Machine& machine, CopyBuffers& buffers,
                         bool has_plain);

}  // namespace quadriga::bench
