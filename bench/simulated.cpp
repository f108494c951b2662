// SPDX-License-Identifier: BSD-3-Clause
// bench/simulated.cpp: products and Cholesky on machines that aren't here, by the virtual clock.
//
// All runs use the default policy and the same options; only machine and matrix differ. Nothing is
// computed: matrices are addresses that no memory stands behind, so a touch would end the program.
#include <fmt/format.h>
#include <quadriga/linalg.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "addresses.h"
#include "base/units.h"
#include "benchmarks.h"
#include "line.h"
#include "tile_graphs.h"

namespace quadriga::bench {
namespace {

using linalg::MatrixView;
using linalg::Op;

constexpr double gib = 1024.0 * 1024 * 1024;

struct Run {
  std::string devices;
  bool product = true;
  std::int64_t n = 16384;
  std::int64_t tile = 1024;  // 0: the default.
  DType dtype = DType::float64;
  bool in_place = true;  // Of a product: C is read.
};

struct Outcome {
  Counters counters;
  TileGraph graph;        // Its kernels' times, computed without the engine.
  int devices = 0;        // Accelerators.
  double compulsory = 0;  // Bytes that must cross to and from the host.
  double flops = 0;

  double seconds() const { return static_cast<double>(counters.elapsed) * 1e-9; }
  double moved() const { return static_cast<double>(counters.host_bytes()) / gib; }
  double bound() const { return std::max(graph.work_seconds / devices, graph.longest_seconds); }
};

void compute(Engine& engine, const Run& run) {
  const Addresses memory(3 * static_cast<std::size_t>(run.n * run.n) * size_of(run.dtype));
  const auto matrix = [&](std::int64_t which) {
    auto* const first = static_cast<std::byte*>(memory.get());
    return MatrixView::columns(first + which * run.n * run.n * size_of(run.dtype), run.n, run.n,
                               run.dtype);
  };
  linalg::Options options;
  options.tile = run.tile;
  if (run.product) {
    linalg::matmul(engine, 1, matrix(0), Op::none, matrix(1), Op::none, run.in_place ? 1 : 0,
                   matrix(2), options);
  } else {
    linalg::cholesky(engine, matrix(0), matrix(run.in_place ? 0 : 1), linalg::Uplo::lower,
                     linalg::Other::leave, options);
  }
}

double flops_of(const Run& run) {
  const double n = static_cast<double>(run.n);
  return run.product ? 2 * n * n * n : n * n * n / 3;
}

Outcome simulate(const Run& run) {
  EngineOptions options;
  options.devices = run.devices;
  options.virtual_clock = true;
  options.compute = false;
  Engine engine(options);
  compute(engine, run);
  Outcome outcome;
  outcome.counters = engine.counters();
  const std::int64_t tiles = run.n / run.tile;
  outcome.graph = run.product ? product_graph(engine.machine(), tiles, run.tile, run.dtype)
                              : cholesky_graph(engine.machine(), tiles, run.tile, run.dtype);
  outcome.devices = engine.machine().spaces() - 1;
  const double moved_tiles =
      static_cast<double>(run.product ? 4 * tiles * tiles : tiles * (tiles + 1));
  outcome.compulsory = moved_tiles * static_cast<double>(run.tile * run.tile) *
                       static_cast<double>(size_of(run.dtype)) / gib;
  outcome.flops = flops_of(run);
  return outcome;
}

Line bytes_line(std::string_view name, const Outcome& outcome) {
  Line line(name);
  line.add("value", outcome.moved()).add("unit", "GiB").add("bound", outcome.compulsory);
  return line;
}

void by_devices(Run run, const std::string& machine, long long count) {
  run.devices = fmt::format("machine={}:{},peer=off", machine, count);
  const Outcome outcome = simulate(run);
  bytes_line(fmt::format("bytes-{}", count), outcome).print();
  Line(fmt::format("makespan-{}", count))
      .add("value", outcome.seconds())
      .add("unit", "s")
      .add("bound", outcome.bound())
      .add("work", outcome.counters.work_seconds)
      .add("work_by_file", outcome.graph.work_seconds)
      .add("critical_path", outcome.graph.longest_seconds)
      .print();
}

void out_of_core(Run run, const std::string& machine) {
  run.devices = fmt::format("machine={}:1,memory=1.5GiB,h2d=0.54GB/s,d2h=0.54GB/s", machine);
  const Outcome outcome = simulate(run);
  Line("out-of-core")
      .add("value", outcome.graph.work_seconds / outcome.seconds())
      .add("unit", "kernels / total")
      .add("bound", 1)
      .add("seconds", outcome.seconds())
      .print();
  bytes_line("out-of-core-bytes", outcome).print();
}

void small_memory(Run run, const std::string& machine) {
  run.devices = fmt::format("machine={}:1,memory=600MB,peer=off", machine);
  run.n = 30720;
  run.tile = 960;
  run.dtype = DType::float32;
  const Outcome outcome = simulate(run);
  bytes_line("idgraf-600MB", outcome).print();
  Line("idgraf-600MB-rate")
      .add("value", outcome.flops / outcome.seconds() / 1e9)
      .add("unit", "GFLOP/s")
      .add("bound", outcome.flops / outcome.graph.work_seconds / 1e9)
      .add("seconds", outcome.seconds())
      .print();
}

// What a machine would reach from host memory to host memory, its result apart from what it reads
// unless that is asked for.
void rate(Run run, const std::string& machine, const Settings& settings, long long count) {
  run.n = settings.integer("n", run.n);
  run.tile = settings.integer("tile", 0, 0);
  run.in_place = settings.text("in-place", "off") == "on";
  const std::string type = settings.text("dtype", "float64");
  require(type == "float32" || type == "float64",
          fmt::format("--dtype {}: expected float32 or float64", type));
  run.dtype = type == "float32" ? DType::float32 : DType::float64;
  EngineOptions options;
  options.devices = fmt::format("machine={}:{}", machine, count);
  options.policy = settings.text("policy");
  if (const std::string memory = settings.text("memory"); !memory.empty())
    options.devices += ",memory=" + memory;
  if (const std::string h2d = settings.text("h2d"); !h2d.empty()) options.devices += ",h2d=" + h2d;
  options.virtual_clock = true;
  options.compute = false;
  options.trace = !settings.text("trace").empty();
  Engine engine(options);
  compute(engine, run);
  const Counters counters = engine.counters();
  const double seconds = static_cast<double>(counters.elapsed) * 1e-9;
  Line(fmt::format("rate-{}", count))
      .add("value", flops_of(run) / seconds * 1e-12)
      .add("unit", "TFLOP/s")
      .add("n", static_cast<double>(run.n))
      .add("seconds", seconds)
      .add("work", counters.work_seconds)
      .add("host_gb", static_cast<double>(counters.host_bytes()) * 1e-9)
      .print();
  if (options.trace) std::ofstream(settings.text("trace")) << engine.trace_json();
}

}  // namespace

void simulated(const Settings& settings) {
  const std::string operation = settings.text("operation", "gemm");
  require(operation == "gemm" || operation == "potrf",
          fmt::format("'{}': the operations are gemm and potrf", operation));
  const std::string machine = settings.text("machine", "machines/idgraf.json");
  const std::string name = settings.text("run", "devices-1");
  Run run;
  run.product = operation == "gemm";
  if (name == "out-of-core" && run.product) {
    out_of_core(run, machine);
  } else if (name == "idgraf-600MB" && !run.product) {
    small_memory(run, machine);
  } else if (name.starts_with("rate-")) {
    rate(run, machine, settings, parse_integer(name.substr(name.find('-') + 1), 1, 8));
  } else {
    require(name.starts_with("devices-"), fmt::format("'{}' is no run of {}", name, operation));
    by_devices(run, machine, parse_integer(name.substr(name.find('-') + 1), 1, 8));
  }
}

}  // namespace quadriga::bench
