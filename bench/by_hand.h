// SPDX-License-Identifier: BSD-3-Clause
// bench/by_hand.h: how long streams take that are written by hand, on GPUs with one hardware queue.
//
// Pure. Such a GPU takes its copies in the order in which they were issued, whatever their streams,
// and so its kernels; a command whose input isn't there keeps those behind it waiting. Copies also
// wait for their bus, which carries one at a time.
//
// Source:  Ino, Nakagawa, Hagihara, GPU-Chariot, IEICE Trans. E96-D(12), 2013, section 3.2.
#pragma once

#include <cstddef>
#include <vector>

namespace quadriga::bench {

/// Of a chunk.
struct HandTimes {
  double in = 0;
  double kernel = 0;
  double out = 0;
};

enum class HandWay {
  naive,    ///< Chunk by chunk: copy in, kernel, copy out; devices by turns.
  batches,  ///< As many as fit: all copies in, all kernels, all copies out.
  threads,  ///< A thread a device takes the next chunk when it has done with one.
};

struct HandMachine {
  std::vector<int> bus_of;  ///< By device.
  std::size_t batch = 1;    ///< Chunks that fit a device.
};

/// Seconds until all chunks are home.
double by_hand(HandWay way, const HandMachine& machine, const std::vector<HandTimes>& chunks);

}  // namespace quadriga::bench
