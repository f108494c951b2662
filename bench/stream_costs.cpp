// SPDX-License-Identifier: BSD-3-Clause
// bench/stream_costs.cpp: what a stage costs that does nothing, streams of short stages, and of
// more data than memory.
#include <fmt/format.h>
#include <quadriga/pipeline.h>

#include <algorithm>
#include <fstream>
#include <string>

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

/// Microseconds a command of chunks so small that nothing else takes time: a copy to a device,
/// --kernels that do nothing, and a copy home.
void stream_commands(const Settings& settings) {
  const auto count = static_cast<std::uint64_t>(settings.integer("count", 20'000));
  const auto kernels = settings.integer("kernels", 1);
  constexpr std::int64_t bytes = 4096;
  Codelet nothing;
  nothing.name = "nothing";
  nothing.access = {Access::update};
  nothing.cpu = [](const Arguments&) {};
  Pipeline pipeline({.devices = settings.text("devices", "emulated:1,memory=64MiB")});
  pipeline.source([count](Chunk& chunk) {
    if (chunk.number() >= count) return false;
    chunk.add("x", bytes, 1, DType::bytes);
    return true;
  });
  for (long long k = 0; k < kernels; ++k) pipeline.kernel(nothing, {updates("x")});
  const double seconds = pipeline.run().seconds;
  Line("commands")
      .add("value", 1e6 * seconds / static_cast<double>(count) / static_cast<double>(kernels + 2))
      .add("unit", "us a command")
      .add("kernels", static_cast<int>(kernels))
      .print();
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

namespace {

/// Kibibytes of a line of /proc/self/status.
double status_kibibytes(const char* key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == key) {
      double value = 0;
      status >> value;
      return value;
    }
  return 0;
}

}  // namespace

/// More data than memory: chunks that the source fills pass a device of --memory, as does the host.
/// What is told is the most memory of this process, its emulated device's included.
void stream_volume(const Settings& settings) {
  const std::string memory = settings.text("memory", "1GiB");
  const double total = 1e9 * static_cast<double>(settings.integer("gigabytes", 100));
  constexpr std::int64_t elements = 4 << 20;  // of 8 bytes: 32 MiB
  const auto count = static_cast<std::uint64_t>(total / 8 / elements) + 1;
  Codelet add_up;
  add_up.name = "sum";
  add_up.access = {Access::read, Access::write};
  add_up.cpu = [](const Arguments& call) {
    const double* const x = call.operands[0].as<double>();
    double sum = 0;
    for (std::int64_t i = 0; i < call.operands[0].rows; i += 512) sum += x[i];
    *call.operands[1].as<double>() = sum;
  };
  Pipeline pipeline({.memory = memory,
                     .host_memory = memory,
                     .devices = fmt::format("emulated:1,memory={}", memory)});
  double found = 0;
  pipeline
      .source([&](Chunk& chunk) {
        if (chunk.number() >= count) return false;
        const View x = chunk.add("x", elements, 1, DType::float64);
        std::fill_n(x.as<double>(), elements, 1.0);
        return true;
      })
      .kernel(add_up, {reads("x"), writes("sum", [](const Chunk&) { return FieldShape{1}; })})
      .serial([&](Chunk& chunk) { found += *chunk["sum"].as<double>(); });
  const double before = status_kibibytes("VmRSS:");
  const PipelineStats stats = pipeline.run();
  require(found == static_cast<double>(count) * (elements / 512), "chunks are missing");
  Line("volume")
      .add("value", static_cast<double>(stats.most_host_bytes) / (1 << 30))
      .add("unit", "GiB of the host at most")
      .add("gigabytes", 8e-9 * elements * static_cast<double>(count))
      .add("process_gibibytes", (status_kibibytes("VmHWM:") - before) / (1 << 20))
      .add("seconds", stats.seconds)
      .print();
}

}  // namespace quadriga::bench
