// SPDX-License-Identifier: BSD-3-Clause
// bench/tbb_stages.cpp: the stream of busy_stages.h as oneTBB's parallel_pipeline, as a reference.
//
// As many chunks in flight as its documentation recommends to begin with, four times the threads.
// Usage: quadriga-bench-tbb CORES MICROSECONDS.
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_pipeline.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/version.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "busy_stages.h"

namespace {

namespace tbb = oneapi::tbb;
using quadriga::bench::BusyStages;

/// Microseconds a chunk.
double run(const BusyStages& stages, int cores) {
  int next = 0;
  long long sum = 0;
  const auto body = [&](int chunk) { return stages.work(), chunk; };
  const auto begin = std::chrono::steady_clock::now();
  tbb::parallel_pipeline(static_cast<std::size_t>(4 * cores),
                         tbb::make_filter<void, int>(tbb::filter_mode::serial_in_order,
                                                     [&](tbb::flow_control& control) {
                                                       if (next == stages.chunks) control.stop();
                                                       return next++;
                                                     }) &
                             tbb::make_filter<int, int>(tbb::filter_mode::parallel, body) &
                             tbb::make_filter<int, int>(tbb::filter_mode::parallel, body) &
                             tbb::make_filter<int, void>(tbb::filter_mode::serial_in_order,
                                                         [&](int chunk) { sum += body(chunk); }));
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  const long long last = stages.chunks - 1;
  if (sum != last * (last + 1) / 2) std::fputs("quadriga-bench-tbb: chunks are missing\n", stderr);
  return took.count() / stages.chunks;
}

}  // namespace

int main(int count, char** words) {
  BusyStages stages;
  const int cores = count > 1 ? std::atoi(words[1]) : 2;
  if (count > 2) stages.microseconds = std::atof(words[2]);
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
                                  static_cast<std::size_t>(cores));
  tbb::task_arena arena(cores);
  double best = 0;
  arena.execute([&] {
    run(stages, cores);
    best = run(stages, cores);
  });
  std::printf(
      "{\"case\": \"stages\", \"value\": %.4f, \"unit\": \"us a chunk\", \"reference\": "
      "\"oneTBB %d.%d\"}\n",
      best, TBB_VERSION_MAJOR, TBB_VERSION_MINOR);
  return 0;
}
