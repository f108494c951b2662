// SPDX-License-Identifier: BSD-3-Clause
// bench/application_streams.cpp: the protein search and the spectrometer by the virtual clock, on
// machines that aren't here, beside their bound.
//
// Chunks are as in bench/gpu_pipelines.py, and kernels take as long as they were measured to; all
// else is the schedule's and the links'. What a run on GPUs takes longer than this is lost by the
// host's functions or by copies and kernels that disturb each other.
#include <fmt/format.h>
#include <quadriga/pipeline.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "addresses.h"
#include "base/random.h"
#include "base/units.h"
#include "benchmarks.h"
#include "line.h"

namespace quadriga::bench {
namespace {

constexpr std::int64_t mebibyte = 1 << 20;

/// What a chunk moves, and how long its kernels take.
struct Way {
  std::int64_t in = 0;
  std::int64_t out = 0;        ///< Of another field.
  std::int64_t temporary = 0;  ///< On the device only.
  bool comes_back = false;     ///< What came in goes home as well.
  double seconds = 0;
};

struct Application {
  std::string name;
  std::vector<Way> chunks;
  double units = 0;  ///< Of all chunks.
  std::string unit;
  std::string memory = {};
  int look_ahead = 64;
};

/// `ways` of 2^26 channels; bench/results/2026-11-26-h100.jsonl has the kernels' times on an H100.
Application spectra(const std::string& name, const Way& way, int devices) {
  constexpr int chunks_a_device = 20;
  return {.name = name,
          .chunks = std::vector<Way>(static_cast<std::size_t>(chunks_a_device * devices), way),
          .units = static_cast<double>(chunks_a_device * devices),
          .unit = "spectra/s",
          .memory = "3GiB",
          .look_ahead = devices};
}

double normal(Random& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
  return radius * std::cos(2 * std::numbers::pi * random.uniform());
}

/// A database of as many records as SWISS-PROT 34 has, and about as long, read `devices` times.
Application proteins(int devices, std::int64_t records, double cells_a_second) {
  constexpr std::int64_t of_database = 59'021;
  constexpr std::int64_t queries = 500;
  constexpr double query_letters = 330.0 * queries;
  Application made{.name = "proteins", .chunks = {}, .unit = "Tcells/s"};
  for (int time = 0; time < devices; ++time) {
    Random random(1);
    for (std::int64_t first = 0; first < of_database; first += records) {
      const std::int64_t count = std::min(records, of_database - first);
      std::int64_t letters = 0;
      for (std::int64_t i = 0; i < count; ++i)
        letters += static_cast<std::int64_t>(
            std::clamp(std::exp(5.68 + 0.65 * normal(random)), 20.0, 5000.0));
      const double cells = query_letters * static_cast<double>(letters);
      made.chunks.push_back({.in = letters + 12 * count + 8,
                             .out = 4 * count * queries,
                             .seconds = cells / cells_a_second});
      made.units += 1e-12 * cells;
    }
  }
  return made;
}

/// Seconds of host stages of a chunk; 0: they aren't there.
struct HostTimes {
  double source = 0;
  double hits = 0;
};

const Way& way_of(const Application& application, const Chunk& chunk) {
  return application.chunks[chunk.number()];
}

FieldUses uses_of(const Application& application) {
  const Way& first = application.chunks.front();
  FieldUses uses = first.comes_back ? updates("x") : reads("x");
  const auto add = [&uses](FieldUses more) { uses.insert(uses.end(), more.begin(), more.end()); };
  if (first.out > 0)
    add(writes("y", [&](const Chunk& chunk) {
      return FieldShape{way_of(application, chunk).out, 1, DType::bytes};
    }));
  if (first.temporary > 0)
    add(temporary("t", [&](const Chunk& chunk) {
      return FieldShape{way_of(application, chunk).temporary, 1, DType::bytes};
    }));
  return uses;
}

std::vector<std::byte> number_of(const Chunk& chunk) {
  const std::size_t number = chunk.number();
  const auto bytes = std::as_bytes(std::span(&number, 1));
  return {bytes.begin(), bytes.end()};
}

PipelineStats simulate(const Machine& machine, const Application& application,
                       const HostTimes& host) {
  EngineOptions options;
  options.machine = machine;
  options.virtual_clock = true;
  options.compute = false;
  Engine engine(options);
  constexpr std::size_t apart = std::size_t{1} << 31;
  const Addresses memory(application.chunks.size() * apart);
  Codelet kernel;
  kernel.name = "kernels";
  for (const FieldUse& use : uses_of(application)) kernel.access.push_back(use.access);
  kernel.cpu = [](const Arguments&) {};
  kernel.cost = [&](const Arguments& arguments) {
    return Cost::of_seconds(application.chunks[arguments.param<std::size_t>()].seconds);
  };
  Pipeline pipeline({.memory = application.memory,
                     .host_memory = "1TiB",
                     .engine = &engine,
                     .look_ahead = application.look_ahead});
  pipeline.source([&](Chunk& chunk) {
    if (chunk.number() >= application.chunks.size()) return false;
    auto* const first = static_cast<std::byte*>(memory.get()) + chunk.number() * apart;
    const Way& way = way_of(application, chunk);
    chunk.lend("x", {first, way.in, 1, way.in, DType::bytes});
    if (way.out > 0) chunk.lend("y", {first + apart / 2, way.out, 1, way.out, DType::bytes});
    return true;
  });
  pipeline.kernel(kernel, uses_of(application), Pipeline::Params(number_of));
  if (host.source > 0) pipeline.takes("source", host.source);
  if (host.hits > 0) pipeline.serial([](Chunk&) {}, "hits").takes("hits", host.hits);
  return pipeline.run();
}

}  // namespace

void stream_applications(const Settings& settings) {
  const std::string path = settings.text("machine", "machines/h200x4.json");
  const auto cells = 1e9 * static_cast<double>(settings.integer("cells", 3100));
  const std::int64_t records = settings.integer("records", 512);
  const HostTimes of_search{.source = 1e-6 * static_cast<double>(settings.integer("source", 0, 0)),
                            .hits = 1e-6 * static_cast<double>(settings.integer("hits", 0, 0))};
  const std::string host_memory = settings.text("host-memory", "");
  const std::int64_t whole = 512 * mebibyte;
  constexpr std::int64_t powers = 4 << 16;
  for (const int devices : {1, 2, 4}) {
    Machine machine = Machine::parse(fmt::format("machine={}:{}", path, devices));
    for (Link& link : machine.links)
      if (link.name == "host-memory" && !host_memory.empty())
        link.bytes_per_second = parse_bytes_per_second(host_memory);
    const Application applications[] = {
        proteins(devices, records, cells),
        spectra("spectra back", {.in = whole, .comes_back = true, .seconds = 3.2e-3}, devices),
        spectra("spectra reduced",
                {.in = whole, .out = powers, .temporary = whole, .seconds = 4.3e-3}, devices),
        spectra("spectra int8",
                {.in = whole / 4, .out = powers, .temporary = whole, .seconds = 3.8e-3}, devices)};
    for (const Application& each : applications) {
      const bool is_search = each.unit == "Tcells/s";
      const PipelineStats stats = simulate(machine, each, is_search ? of_search : HostTimes{});
      Line(fmt::format("{}-{}", each.name, devices))
          .add("value", each.units / stats.seconds)
          .add("unit", each.unit)
          .add("percent_over_bound", 100 * (stats.seconds / stats.bound_seconds - 1))
          .add("limit", stats.limit)
          .add("chunks", static_cast<int>(stats.chunks))
          .print();
    }
  }
}

}  // namespace quadriga::bench
