// SPDX-License-Identifier: BSD-3-Clause
// bench/stream_costs.cpp: what a stage costs that does nothing, and streams of short stages.
#include <fmt/format.h>
#include <quadriga/pipeline.h>

#include "benchmarks.h"
#include "busy_stages.h"
#include "line.h"

namespace quadriga::bench {

/// Nanoseconds a chunk and stage of pipelines whose stages do nothing.
void stream_cost(const Settings& settings) {
  const auto count = static_cast<std::uint64_t>(settings.integer("count", 200'000));
  const auto stages = settings.integer("stages", 4);
  for (const char* const mode : {"parallel", "serial_in_order"}) {
    PipelineOptions options;
    options.devices = settings.text("devices", "cpu:2");
    Pipeline pipeline(options);
    pipeline.source([count](Chunk& chunk) { return chunk.number() < count; });
    const bool is_parallel = std::string_view(mode) == "parallel";
    for (long long s = 0; s < stages; ++s)
      is_parallel ? pipeline.parallel([](Chunk&) {}) : pipeline.serial_in_order([](Chunk&) {});
    const double begin = now();
    pipeline.run();
    const double seconds = now() - begin;
    Line(fmt::format("cost-{}", mode))
        .add("value", 1e9 * seconds / static_cast<double>(count) / static_cast<double>(stages))
        .add("unit", "ns a stage")
        .add("stages", static_cast<int>(stages))
        .print();
  }
}

/// Microseconds a chunk of stages that keep their cores busy for a stated time.
void stream_stages(const Settings& settings) {
  BusyStages stages;
  const auto cores = static_cast<int>(settings.integer("cores", 2));
  stages.microseconds = static_cast<double>(settings.integer("microseconds", 10));
  double value = 0;
  for (int run = 0; run < 2; ++run) {  // the first warms up
    PipelineOptions options;
    options.devices = fmt::format("cpu:{}", cores);
    Pipeline pipeline(options);
    std::uint64_t sum = 0;
    pipeline.source(
        [&](Chunk& chunk) { return chunk.number() < static_cast<std::uint64_t>(stages.chunks); });
    for (int s = 0; s < stages.parallel_stages; ++s)
      pipeline.parallel([&](Chunk&) { stages.work(); });
    pipeline.serial_in_order([&](Chunk& chunk) {
      stages.work();
      sum += chunk.number();
    });
    const double begin = now();
    pipeline.run();
    value = 1e6 * (now() - begin) / stages.chunks;
    const auto last = static_cast<std::uint64_t>(stages.chunks - 1);
    require(sum == last * (last + 1) / 2, "chunks are missing");
  }
  Line("stages")
      .add("value", value)
      .add("unit", "us a chunk")
      .add("bound", stages.bound_microseconds(cores))
      .add("cores", cores)
      .print();
}

}  // namespace quadriga::bench
