// SPDX-License-Identifier: BSD-3-Clause
// bench/unrolled.cpp: what a graph that is a function of task indices takes: time and memory a
// task, however many there are.
#include <fmt/format.h>
#include <quadriga/task_graph.h>

#include <fstream>
#include <string>
#include <vector>

#include "benchmarks.h"
#include "line.h"
#include "timed_backend.h"

namespace quadriga::bench {
namespace {

/// Of the process now, from the kernel.
double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double all = 0, resident = 0;
  file >> all >> resident;
  return resident * 4096;
}

}  // namespace

/// Tasks that each update one of 64 values; memory counts from a tenth of them on.
void unrolled(const Settings& settings) {
  const std::int64_t tasks = settings.integer("tasks", 10'000'000);
  const std::int64_t width = 64;
  Engine engine({.devices = settings.text("devices", "cpu:1")});
  std::vector<double> values(static_cast<std::size_t>(width));
  DataGrid data(1, width);
  for (std::int64_t i = 0; i < width; ++i)
    data(0, i) = engine.data(&values[static_cast<std::size_t>(i)], 1, 1, 1, DType::float64);
  const Codelet count{.name = "count", .access = {Access::update}, .cpu = [](const Arguments& a) {
                        *a.operands[0].as<double>() += 1;
                      }};
  const std::int64_t steps = tasks / width;
  double early = 0;
  TaskGraph graph(steps);
  graph.add({.codelet = &count,
             .ranges = {[&](TaskIndices i) {
               if (i[0] == steps / 10) early = resident_bytes();
               return TaskRange{0, width};
             }},
             .operands = [&](TaskIndices i, std::vector<Operand>& to) {
               to.push_back({data(0, i[1]), Access::update});
             }});
  const double begin = now();
  const auto made = static_cast<double>(graph.submit(engine));
  engine.wait();
  Line("unrolled")
      .add("value", (now() - begin) / made * 1e9)
      .add("unit", "ns/task")
      .add("bound", 0)
      .add("tasks", made)
      .add("megabytes", early / 1e6)
      .add("more_megabytes", (resident_bytes() - early) / 1e6)
      .print();
}

}  // namespace quadriga::bench
