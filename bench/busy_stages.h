// SPDX-License-Identifier: BSD-3-Clause
// bench/busy_stages.h: a stream whose stages take a stated time, for us and for a reference.
#pragma once

#include <chrono>

namespace quadriga::bench {

/// A serial source that does nothing, `parallel_stages` stages that take several chunks at once and
/// a last one that takes one at a time in order, each of which keeps its core busy.
struct BusyStages {
  int chunks = 20'000;
  int parallel_stages = 2;
  double microseconds = 10;

  /// What a chunk takes at least on so many cores.
  double bound_microseconds(int cores) const {
    const double on_all = microseconds * (parallel_stages + 1) / cores;
    return on_all > microseconds ? on_all : microseconds;
  }
  void work() const {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::duration<double, std::micro>(microseconds);
    while (Clock::now() < end) {
    }
  }
};

}  // namespace quadriga::bench
