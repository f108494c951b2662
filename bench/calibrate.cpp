// SPDX-License-Identifier: BSD-3-Clause
// bench/calibrate.cpp: kernels in the shapes that run, alone and at once, and what an operation
// costs: what plans and simulations take from a machine's description.
#include <fmt/format.h>
#include <quadriga/engine.h>
#include <quadriga/error.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>

#include "benchmarks.h"
#include "device/at_once.h"
#include "device/factory.h"
#include "line.h"
#include "message_cost.h"
#include "planning_cost.h"
#include "tile_kernels.h"

namespace quadriga::bench {
namespace {

constexpr std::int64_t smallest = 128;
constexpr int tiles_a_stream = 5;
constexpr int messages_a_time = 20;  // They are short.
constexpr double share_of_memory = 0.5;
constexpr double least_seconds = 1e-9;

std::vector<DType> types_of(const std::string& letters) {
  constexpr std::string_view known = "sdcz";
  constexpr DType types[] = {DType::float32, DType::float64, DType::complex64, DType::complex128};
  std::vector<DType> found;
  for (const char letter : letters) {
    const std::size_t at = known.find(letter);
    require(at != known.npos, fmt::format("--types {}: expected letters of sdcz", letters));
    found.push_back(types[at]);
  }
  return found;
}

class Calibration {
 public:
  Calibration(Machine& machine, const Settings& settings)
      : machine_(machine),
        backend_(make_backend(machine)),
        most_(settings.integer("most", 4096, smallest)),
        repeat_(static_cast<int>(settings.integer("repeat", 5))),
        types_(types_of(settings.text("types", "sd"))) {}

  void run() {
    for (DeviceId id = 0; id < machine_.devices.size(); ++id) {
      const Device& device = machine_.devices[id];
      const bool computes = device.space != host_space || device.cores > 0;
      if (computes) measure(id);
    }
    message();
    planning();
  }

 private:
  /// Devices alike are measured once: the first stands for them.
  void measure(DeviceId id) {
    Device& device = machine_.devices[id];
    const auto same = std::ranges::find_if(measured_, [&](DeviceId other) {
      const Device& its = machine_.devices[other];
      return its.kind == device.kind && its.model == device.model &&
             its.memory_bytes == device.memory_bytes && its.cores == device.cores;
    });
    if (same != measured_.end()) {
      device.rates = machine_.devices[*same].rates;
      return;
    }
    measured_.push_back(id);
    if (device.rates.empty()) device.rates = device.name;
    open_streams(id);
    launch(id);
    for (const DType type : types_) {
      kernels(id, type);
      gains(id, type);
    }
  }

  /// A core runs one kernel, whatever the others do: there is nothing to gain.
  void open_streams(DeviceId id) {
    const Device& device = machine_.devices[id];
    const int count = device.space == host_space
                          ? 1
                          : std::clamp(device.compute_streams, 1, static_cast<int>(most_at_once));
    streams_.clear();
    for (int i = 0; i < count; ++i)
      streams_.push_back(backend_->create_stream(id, StreamKind::compute));
  }

  void launch(DeviceId id) {
    TimedTiles tiles(*backend_, id, {streams_.data(), 1}, DType::float64, 1);
    launch_ = tiles.launch_seconds(repeat_);
    machine_.launch_seconds = std::max(machine_.launch_seconds, launch_);
    print(id, "launch", launch_, "s");
  }

  /// All else has been measured by now: a failure leaves the description without it.
  void message() {
    try {
      machine_.message = message_cost(machine_, messages_a_time * repeat_);
    } catch (const Error& error) {
      fmt::print(stderr, "messages between devices weren't measured: {}\n", error.what());
    }
    if (machine_.message.latency_seconds == 0) return;
    Line("message").add("value", machine_.message.latency_seconds).add("unit", "s").print();
    Line("message-busy").add("value", machine_.message.busy_seconds).add("unit", "s").print();
  }

  /// By the figures that were found: a trial takes as long as its program has tasks.
  void planning() {
    machine_.planning = planning_cost(machine_, repeat_);
    const PlanningCost& cost = machine_.planning;
    if (cost.task_seconds == 0) return;
    const auto say = [](const char* what, double seconds) {
      Line(fmt::format("planning-{}", what)).add("value", seconds).add("unit", "s").print();
    };
    say("engine", cost.engine_seconds);
    say("task", cost.task_seconds);
    say("listed", cost.listed_seconds);
    say("product", cost.product_seconds);
  }

  std::int64_t largest(const Device& device, DType type, std::size_t streams) const {
    if (device.space == host_space) return most_;
    const double room = share_of_memory * static_cast<double>(device.memory_bytes) /
                        static_cast<double>(size_of(type) * tiles_a_stream * streams);
    return std::min(most_, static_cast<std::int64_t>(std::sqrt(room)));
  }

  void kernels(DeviceId id, DType type) {
    const Device& device = machine_.devices[id];
    for (const TileKernel kernel : tile_kernels)
      machine_.kernels[std::string(name_of(kernel, type))].erase(device.rates);
    const std::int64_t most = largest(device, type, 1);
    for (std::int64_t order = smallest; order <= most; order *= 2) {
      TimedTiles tiles(*backend_, id, {streams_.data(), 1}, type, order);
      for (const TileKernel kernel : tile_kernels) {
        const std::string name(name_of(kernel, type));
        // The virtual clock charges each operation with the launch.
        const double seconds = std::max(tiles.seconds(kernel, repeat_) - launch_, least_seconds);
        machine_.kernels[name][device.rates][static_cast<double>(order)] = seconds;
        print(id, fmt::format("{}-{}", name, order), seconds, "s");
      }
    }
    require(most >= smallest,
            fmt::format("device '{}' has no room for tiles of order {}", device.name, smallest));
  }

  /// Large kernels fill the device: beyond the largest order they share it.
  void gains(DeviceId id, DType type) {
    const Device& device = machine_.devices[id];
    const std::int64_t most = std::min<std::int64_t>(2048, largest(device, type, streams_.size()));
    for (int count = 2; count <= static_cast<int>(streams_.size()); ++count)
      for (const TileKernel kernel : tile_kernels)
        machine_.kernels[row_at_once(name_of(kernel, type), count)].erase(device.rates);
    for (std::int64_t order = smallest; streams_.size() > 1 && order <= most; order *= 2) {
      TimedTiles tiles(*backend_, id, streams_, type, order);
      for (const TileKernel kernel : tile_kernels)
        for (int count = 2; count <= static_cast<int>(streams_.size()); ++count) {
          const std::string row = row_at_once(name_of(kernel, type), count);
          const double gain = tiles.gain(kernel, count, repeat_);
          const double alone =
              machine_.kernels[std::string(name_of(kernel, type))][device.rates].at(
                  static_cast<double>(order));
          machine_.kernels[row][device.rates][static_cast<double>(order)] = alone * count / gain;
          print(id, fmt::format("{}-{}", row, order), gain, "times one");
        }
    }
  }

  void print(DeviceId id, const std::string& what, double value, const char* unit) const {
    Line(fmt::format("{}-{}", machine_.devices[id].name, what))
        .add("value", value)
        .add("unit", unit)
        .print();
  }

  Machine& machine_;
  std::unique_ptr<Backend> backend_;
  std::int64_t most_;
  int repeat_;
  std::vector<DType> types_;
  std::vector<DeviceId> measured_;
  std::vector<StreamId> streams_;  ///< Of the device that is measured.
  double launch_ = 0;
};

}  // namespace

void calibrate(const Settings& settings) {
  Machine machine = Machine::parse(settings.text("devices", "auto"));
  machine.launch_seconds = 0;
  Calibration(machine, settings).run();
  const std::string file = settings.text("description");
  if (file.empty()) return;
  std::ofstream out(file);
  out << machine.to_json();
  if (!out.flush()) fail(Errc::io, fmt::format("{} can't be written", file));
}

}  // namespace quadriga::bench
