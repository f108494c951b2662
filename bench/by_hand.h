// SPDX-License-Identifier: BSD-3-Clause
// bench/by_hand.h: how long streams take that are written by hand, by the virtual clock.
#pragma once

#include <quadriga/machine.h>

#include <cstddef>
#include <vector>

namespace quadriga::bench {

/// Of a chunk.
struct HandTimes {
  double in_bytes = 0;
  double kernel_seconds = 0;
  double out_bytes = 0;
};

/// Programs with CUDA streams, as users write them.
enum class HandWay {
  naive,    ///< Chunk by chunk: copy in, kernel, copy out; devices and their streams by turns.
  batches,  ///< As many as fit: all copies in, all kernels, all copies out.
  threads,  ///< A thread and a stream a device: the next chunk when it has done with one.
};

/// Seconds until all chunks are home.
///
/// machine:  accelerators with routes from and to the host; what overlaps follows from their
///           copy_engines and hardware_queues.
/// batch:    chunks that fit a device; of HandWay::batches alone.
double by_hand(HandWay way, const Machine& machine, const std::vector<HandTimes>& chunks,
               std::size_t batch = 1);

}  // namespace quadriga::bench
