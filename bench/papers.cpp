// SPDX-License-Identifier: BSD-3-Clause
// bench/papers.cpp: products and Cholesky by tiles as other systems' papers ran them, by the
// virtual clock on descriptions of their machines.
//
// The graphs are the papers', not the library's: tiles of one size, tasks in the order of the tiled
// algorithm, and no owners, so that policies alone decide. A kernel for which the description has
// no time on GPUs runs on cores, as in the papers.
#include <fmt/format.h>
#include <quadriga/engine.h>
#include <quadriga/error.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "addresses.h"
#include "benchmarks.h"
#include "divided.h"
#include "line.h"

namespace quadriga::bench {
namespace {

constexpr std::array kernel_names{"dgemm", "dsyrk", "dtrsm", "dpotrf"};
constexpr int most_cores = 1024;

struct Study {
  Machine machine;
  bool is_product = true;
  std::int64_t n = 0;
  std::int64_t tile = 0;

  std::int64_t tiles() const { return n / tile; }
  double flops() const {
    const auto order = static_cast<double>(n);
    return order * order * order * (is_product ? 2 : 1.0 / 3);
  }
};

double volume(std::int64_t order) {
  const auto rows = static_cast<double>(order);
  return rows * rows * rows;
}

Device& host_of(Machine& machine) {
  const auto cpu = std::ranges::find(machine.devices, DeviceKind::cpu, &Device::kind);
  require(cpu != machine.devices.end(),
          fmt::format("machine '{}' describes no cpu, on which factorizations run", machine.name));
  return *cpu;
}

/// Cores in crews, each of which runs a coarse kernel as a graph of fine ones. A crew has as many
/// cores as a tile has rows of fine tiles: more would wait in a solve.
void divide(Machine& machine, std::int64_t tile, std::int64_t fine) {
  Device& host = host_of(machine);
  require(tile % fine == 0, fmt::format("--fine {}: doesn't divide --tile {}", fine, tile));
  require(host.cores > 0, fmt::format("--fine {}: '{}' has no cores", fine, host.name));
  const int crews = std::max(1, host.cores / static_cast<int>(tile / fine));
  const auto alone = [&](std::string_view kernel) {
    return machine.kernel_seconds(host, kernel, static_cast<double>(fine), volume(fine));
  };
  const FineSeconds seconds{alone("dgemm"), alone("dsyrk"), alone("dtrsm"), alone("dpotrf")};
  const int cores = host.cores / crews;
  std::map<std::string, double> coarse;
  for (const std::string name : kernel_names)
    coarse[name] = divided_seconds(name.substr(1), tile / fine, seconds, cores);
  for (const auto& [name, time] : coarse)
    machine.kernels[name][host.rates] = {{static_cast<double>(tile), time}};
  host.cores = host.compute_streams = crews;
}

Study study_of(const Settings& settings) {
  Study study;
  const std::string operation = settings.text("operation", "potrf");
  require(operation == "gemm" || operation == "potrf",
          fmt::format("--operation {}: expected gemm or potrf", operation));
  study.is_product = operation == "gemm";
  study.n = settings.integer("n", 16384);
  study.tile = settings.integer("tile", 1024);
  study.n = study.n / study.tile * study.tile;
  require(study.n > 0, fmt::format("--n is less than a tile of {}", study.tile));
  const std::string file = settings.text("machine");
  require(!file.empty(), "--machine: expected a description");
  study.machine = Machine::parse(
      fmt::format("machine={}:{},cpu=on,peer=off", file, settings.integer("devices", 1)));
  Device& host = host_of(study.machine);
  const auto cores = static_cast<int>(settings.integer("cores", host.cores, 0));
  require(cores <= most_cores, fmt::format("--cores {}: at most {}", cores, most_cores));
  host.cores = cores;
  host.compute_streams = std::max(1, cores);
  const auto streams = static_cast<int>(settings.integer("streams", 0, 0));
  for (Device& device : study.machine.devices)
    if (device.space != host_space && streams > 0) device.compute_streams = streams;
  const std::int64_t fine = settings.integer("fine", 0, 0);
  if (fine > 0) divide(study.machine, study.tile, fine);
  return study;
}

/// Matrices of contiguous tiles, and the kernels on them.
class Graph {
 public:
  Graph(Engine& engine, const Study& study)
      : engine_(engine),
        study_(study),
        bytes_(static_cast<std::size_t>(study.tile * study.tile) * size_of(DType::float64)),
        memory_(bytes_ * static_cast<std::size_t>((study.is_product ? 3 : 1) * study.tiles() *
                                                  study.tiles())) {
    for (const std::string name : kernel_names) {
      Codelet& codelet = codelets_[name];
      codelet.name = name;
      codelet.cpu = [](const Arguments&) {};
      codelet.access = {Access::read, Access::read, Access::update};
      if (name == "dsyrk" || name == "dtrsm") codelet.access = {Access::read, Access::update};
      if (name == "dpotrf") codelet.access = {Access::update};
      const Cost cost{codelet.name, static_cast<double>(study.tile), volume(study.tile)};
      codelet.cost = [cost](const Arguments&) { return cost; };
      codelet.host_only = !runs_on_gpus(name);
    }
  }

  void product() {
    const std::int64_t tiles = study_.tiles();
    const std::vector<Data> a = matrix(0), b = matrix(1), c = matrix(2);
    for (std::int64_t i = 0; i < tiles; ++i)
      for (std::int64_t j = 0; j < tiles; ++j)
        for (std::int64_t k = 0; k < tiles; ++k)
          submit("dgemm", 0, {{at(a, i, k)}, {at(b, k, j)}, {at(c, i, j), Access::update}});
  }

  /// Tasks that lead to the next columns come first.
  void cholesky() {
    const std::int64_t tiles = study_.tiles();
    const std::vector<Data> a = matrix(0);
    const auto before = [&](std::int64_t col) { return static_cast<int>(tiles - col); };
    for (std::int64_t k = 0; k < tiles; ++k) {
      submit("dpotrf", before(k), {{at(a, k, k), Access::update}});
      for (std::int64_t i = k + 1; i < tiles; ++i)
        submit("dtrsm", before(k), {{at(a, k, k)}, {at(a, i, k), Access::update}});
      for (std::int64_t j = k + 1; j < tiles; ++j) {
        submit("dsyrk", before(j), {{at(a, j, k)}, {at(a, j, j), Access::update}});
        for (std::int64_t i = j + 1; i < tiles; ++i)
          submit("dgemm", before(j), {{at(a, i, k)}, {at(a, j, k)}, {at(a, i, j), Access::update}});
      }
    }
  }

 private:
  bool runs_on_gpus(const std::string& name) const {
    const auto times = study_.machine.kernels.find(name);
    return times != study_.machine.kernels.end() && times->second.contains("gpu");
  }

  std::vector<Data> matrix(std::int64_t which) {
    const std::int64_t count = study_.tiles() * study_.tiles();
    std::vector<Data> tiles;
    for (std::int64_t i = 0; i < count; ++i) {
      auto* const first = static_cast<std::byte*>(memory_.get());
      tiles.push_back(engine_.data(first + static_cast<std::size_t>(which * count + i) * bytes_,
                                   study_.tile, study_.tile, study_.tile, DType::float64));
    }
    return tiles;
  }

  const Data& at(const std::vector<Data>& tiles, std::int64_t row, std::int64_t col) const {
    return tiles[static_cast<std::size_t>(row * study_.tiles() + col)];
  }

  void submit(const std::string& kernel, int priority, std::initializer_list<Operand> operands) {
    SubmitOptions options;
    options.priority = priority;
    engine_.submit(codelets_.at(kernel), operands, options);
    ++tasks_;
  }

 public:
  std::int64_t tasks() const { return tasks_; }

 private:
  Engine& engine_;
  const Study& study_;
  std::size_t bytes_;
  Addresses memory_;
  std::map<std::string, Codelet> codelets_;
  std::int64_t tasks_ = 0;
};

}  // namespace

void papers(const Settings& settings) {
  const Study study = study_of(settings);
  EngineOptions options;
  options.machine = study.machine;
  options.policy = settings.text("policy");
  options.virtual_clock = true;
  options.compute = false;
  Engine engine(options);
  Graph graph(engine, study);
  const double begin = now();
  if (study.is_product) {
    graph.product();
  } else {
    graph.cholesky();
  }
  engine.wait();
  const Counters counters = engine.counters();
  const double seconds = static_cast<double>(counters.elapsed) * 1e-9;
  Line(study.is_product ? "gemm" : "potrf")
      .add("value", study.flops() / seconds * 1e-9)
      .add("unit", "GFLOP/s")
      .add("n", static_cast<double>(study.n))
      .add("seconds", seconds)
      .add("host_bytes", static_cast<double>(counters.host_bytes()))
      .add("tasks", static_cast<double>(graph.tasks()))
      .add("took", now() - begin)
      .print();
}

}  // namespace quadriga::bench
