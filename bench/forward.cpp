// SPDX-License-Identifier: BSD-3-Clause
// bench/forward.cpp: a tile of the host's that several devices want, beside the copy to one.
//
// Tasks without work read it, one on each device; between two runs no device holds it.
#include <fmt/format.h>
#include <quadriga/engine.h>
#include <quadriga/error.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "addresses.h"
#include "benchmarks.h"
#include "line.h"

namespace quadriga::bench {
namespace {

constexpr std::int64_t rows = 1 << 16;  // Bytes of a column.

/// What the copies of one run took and moved.
struct Copied {
  double seconds = std::numeric_limits<double>::infinity();
  double from_host = 0;  // Bytes.
};

Codelet reader() {
  Codelet codelet;
  codelet.name = "read";
  codelet.access = {Access::read};
  codelet.cpu = codelet.cuda = [](const Arguments&) {};
  codelet.cost = [](const Arguments&) { return Cost::of_seconds(1e-9); };
  return codelet;
}

/// Devices of the engine that aren't the host.
std::vector<DeviceId> accelerators(const Engine& engine) {
  std::vector<DeviceId> found;
  const std::vector<Device>& devices = engine.machine().devices;
  for (DeviceId id = 0; id < devices.size(); ++id)
    if (devices[id].space != host_space) found.push_back(id);
  return found;
}

/// The quickest of several runs: others on the machine only make one longer.
Copied copy_to(Engine& engine, const Codelet& codelet, Data data, std::span<const DeviceId> devices,
               long long repeat) {
  Copied least;
  for (long long i = 0; i < repeat; ++i) {
    engine.reset_counters();
    for (const DeviceId device : devices)
      engine.submit(codelet, {{data, Access::read}}, {.device = device});
    engine.wait();
    const Counters counters = engine.counters();
    const double seconds = static_cast<double>(counters.elapsed) * 1e-9;
    if (seconds < least.seconds) least = {seconds, static_cast<double>(counters.host_bytes())};
  }
  return least;
}

}  // namespace

void forward(const Settings& settings) {
  const std::string clock = settings.text("clock", "virtual");
  require(clock == "virtual" || clock == "real",
          fmt::format("--clock {}: expected virtual or real", clock));
  const std::int64_t columns = (settings.integer("bytes", 1 << 30) + rows - 1) / rows;
  EngineOptions options;
  options.devices = settings.text("devices", "machine=machines/h200x4.json:4");
  options.virtual_clock = clock == "virtual";
  options.compute = !options.virtual_clock;
  const auto bytes = static_cast<std::size_t>(rows * columns);
  const Addresses addresses(bytes);
  std::vector<std::byte> memory(options.virtual_clock ? 0 : bytes, std::byte{1});
  void* const home = options.virtual_clock ? addresses.get() : memory.data();
  const Codelet codelet = reader();
  Engine engine(options);
  const std::vector<DeviceId> devices = accelerators(engine);
  require(devices.size() > 1,
          fmt::format("'{}': expected several devices with memory of their own", options.devices));
  const Data data = engine.data(home, rows, columns, rows, DType::bytes);
  const long long repeat = settings.integer("repeat", options.virtual_clock ? 1 : 5);
  const Copied one = copy_to(engine, codelet, data, std::span(devices).first(1), repeat);
  const Copied all = copy_to(engine, codelet, data, devices, repeat);
  Line(fmt::format("forward-{}", devices.size()))
      .add("value", all.seconds / one.seconds)
      .add("unit", "of the copy to one")
      .add("bound", 1)
      .add("seconds_to_one", one.seconds)
      .add("seconds", all.seconds)
      .add("bytes", static_cast<double>(bytes))
      .add("from_host", all.from_host)
      .print();
}

}  // namespace quadriga::bench
