// SPDX-License-Identifier: BSD-3-Clause
// bench/overhead.cpp: what a task costs: time, calls of malloc, resident memory.
#include <fmt/format.h>
#include <quadriga/engine.h>
#include <quadriga/error.h>

#include <fstream>

#include "allocation_count.h"
#include "base/units.h"
#include "benchmarks.h"
#include "empty_graphs.h"
#include "line.h"

namespace quadriga::bench {
namespace {

EngineOptions host_options(const Settings& settings) {
  EngineOptions options;
  options.devices = fmt::format("cpu:{}", settings.integer("cores", 2));
  return options;
}

// The time that the cores need to call the empty variants and do nothing else.
double bare_call_seconds(const Codelet& codelet, long long cores) {
  constexpr int calls = 1'000'000;
  const Kernel kernel = codelet.cpu;
  const Arguments arguments;
  const double begin = now();
  for (int i = 0; i < calls; ++i) kernel(arguments);
  return (now() - begin) / calls / static_cast<double>(cores);
}

// In MB, by the kernel's count; `key` as "VmRSS:" or "VmHWM:" (the most so far).
double resident_megabytes(std::string_view key) {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    double kilobytes = 0;
    if (word == key && status >> kilobytes) return kilobytes * 1024 / 1e6;
  }
  fail(Errc::unavailable, fmt::format("/proc/self/status has no {}", key));
}

void run_million(Engine& engine) {
  EmptyGraph graph(engine, "gemm3", 100);
  graph.submit();
  engine.wait();
}

}  // namespace

void empty_tasks(const Settings& settings) {
  const std::string name = settings.text("case", "gemm3");
  Engine engine(host_options(settings));
  EmptyGraph graph(engine, name);
  Line(name)
      .add("value", seconds_a_task(engine, graph, settings.integer("repeat", 5)) * 1e9)
      .add("unit", "ns/task")
      .add("bound", bare_call_seconds(graph.codelet(), settings.integer("cores", 2)) * 1e9)
      .print();
}

void allocations(const Settings& settings) {
  Engine engine(host_options(settings));
  EmptyGraph product(engine, "gemm3");
  EmptyGraph independent(engine, "independent");
  EmptyGraph chains(engine, "chains");
  std::int64_t tasks = 0;
  const auto calls_of_pass = [&](bool slow) {
    const std::int64_t before = allocation_count();
    tasks += product.submit(slow) + independent.submit(slow) + chains.submit(slow);
    engine.wait();
    return allocation_count() - before;
  };
  // Lists grow with the backlog, which slow tasks make long; then until they have met every case.
  constexpr int most_passes = 30;
  const std::int64_t first_calls = calls_of_pass(true);
  int growing = 1;
  while (growing < most_passes && calls_of_pass(false) > 0) ++growing;
  tasks = 0;
  std::int64_t calls = 0;
  for (int pass = 0; pass < 5; ++pass) calls += calls_of_pass(false);
  Line("malloc")
      .add("value", static_cast<double>(calls) / static_cast<double>(tasks))
      .add("unit", "calls/task")
      .add("bound", 0)
      .add("calls", static_cast<double>(calls))
      .add("calls_in_first_pass", static_cast<double>(first_calls))
      .add("passes_before", growing)
      .add("tasks", static_cast<double>(tasks))
      .print();
}

void resident_memory(const Settings& settings) {
  double on_cores = 0;
  {
    Engine engine(host_options(settings));
    run_million(engine);
    on_cores = resident_megabytes("VmRSS:");
  }
  // The devices' memory is counted as the runtime's here, for it is small.
  EngineOptions options;
  options.devices = "emulated:2,memory=16MiB";
  Engine engine(options);
  run_million(engine);
  const double on_devices = resident_megabytes("VmRSS:");
  Line("memory")
      .add("value", std::max(on_cores, on_devices))
      .add("unit", "MB")
      .add("bound", 0)
      .add("cpu", on_cores)
      .add("emulated", on_devices)
      .add("most", resident_megabytes("VmHWM:"))
      .print();
}

}  // namespace quadriga::bench
