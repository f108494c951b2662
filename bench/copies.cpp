// SPDX-License-Identifier: BSD-3-Clause
// bench/copies.cpp: rates of copies between the host and devices, by direction and size.
#include <fmt/format.h>
#include <quadriga/engine.h>
#include <quadriga/error.h>

#include <array>
#include <cstring>
#include <numeric>

#include "base/units.h"
#include "benchmarks.h"
#include "device/emulated/fair_share.h"
#include "device/factory.h"
#include "line.h"

namespace quadriga::bench {
namespace {

constexpr std::array<std::size_t, 5> sizes{4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20};
constexpr double seconds_of_run = 0.05;

// One direction between two memories, with memory and a stream of its own.
struct Flow {
  SpaceId from = host_space;
  SpaceId to = host_space;
  StreamId stream = 0;
  const std::byte* source = nullptr;
  std::byte* target = nullptr;
};

// The devices' memory and the host's pages that copies go between.
class Bench {
 public:
  Bench(const Machine& machine, std::size_t bytes, bool pins)
      : backend_(make_backend(machine)), bytes_(bytes), pins_(pins) {}

  Flow flow(DeviceId device, SpaceId from, SpaceId to) {
    const bool in = from == host_space;
    const StreamKind kind = in                 ? StreamKind::copy_in
                            : to == host_space ? StreamKind::copy_out
                                               : StreamKind::peer_in;
    return {from, to, backend_->create_stream(device, kind), memory(from), memory(to)};
  }

  /// Bytes per second of `copies` on each of the flows at once.
  double rate(const std::vector<Flow>& flows, std::size_t bytes, std::size_t copies) {
    const double begin = now();
    for (std::size_t i = 0; i < copies; ++i) {
      for (const Flow& flow : flows) {
        backend_->copy(flow.stream, {.from = flow.from,
                                     .to = flow.to,
                                     .source = flow.source,
                                     .target = flow.target,
                                     .width_bytes = bytes});
      }
    }
    finish(flows.size() * copies);
    return static_cast<double>(flows.size() * copies * bytes) / (now() - begin);
  }

 private:
  void finish(std::size_t operations) {
    std::array<Completion, 64> ended;
    while (operations > 0) {
      const std::size_t count = backend_->next_completion(ended, never);
      for (std::size_t i = 0; i < count; ++i) {
        if (ended[i].error) std::rethrow_exception(ended[i].error);
      }
      operations -= count;
    }
  }

  std::byte* memory(SpaceId space) {
    const Machine& machine = backend_->machine();
    if (space == host_space) {
      host_.emplace_back(bytes_, std::byte{1});
      if (pins_) backend_->pin(host_.back().data(), bytes_);
      return host_.back().data();
    }
    for (std::size_t i = 0; i < machine.devices.size(); ++i) {
      if (machine.devices[i].space != space) continue;
      std::byte* const found = backend_->allocate(static_cast<DeviceId>(i), bytes_);
      if (!found)
        fail(Errc::too_large, fmt::format("{} has no room for {}", machine.devices[i].name,
                                          format_bytes(static_cast<double>(bytes_))));
      return found;
    }
    fail(Errc::internal, "a space without a device");
  }

  std::vector<std::vector<std::byte>> host_;
  std::unique_ptr<Backend> backend_;
  std::size_t bytes_;
  bool pins_;
};

double memcpy_rate(std::size_t bytes) {
  std::vector<std::byte> source(bytes, std::byte{1});
  std::vector<std::byte> target(bytes);
  const double begin = now();
  double end = begin;
  double moved = 0;
  while (end - begin < seconds_of_run) {
    for (int i = 0; i < 4; ++i) std::memcpy(target.data(), source.data(), bytes);
    moved += 4 * static_cast<double>(bytes);
    end = now();
  }
  return moved / (end - begin);
}

// What the links allow the flows together.
double stated_rate(const Machine& machine, const std::vector<Flow>& flows) {
  std::vector<int> routes;
  for (const Flow& flow : flows) {
    routes.push_back(static_cast<int>(machine.route(flow.from, flow.to) - machine.routes.data()));
  }
  std::vector<double> rates(flows.size());
  FairShare(machine).rates(routes, rates);
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

struct Way {
  std::string name;
  std::vector<Flow> flows;
};

std::vector<Way> ways_of(const Machine& machine, Bench& bench) {
  std::vector<Flow> all_in;
  std::vector<DeviceId> devices;
  for (std::size_t i = 0; i < machine.devices.size(); ++i) {
    if (machine.devices[i].space != host_space) devices.push_back(static_cast<DeviceId>(i));
  }
  const DeviceId first = devices.front();
  const SpaceId space = machine.devices[first].space;
  const Flow in = bench.flow(first, host_space, space);
  const Flow out = bench.flow(first, space, host_space);
  std::vector<Way> ways{{"h2d", {in}}, {"d2h", {out}}, {"both", {in, out}}};
  for (const DeviceId device : devices) {
    all_in.push_back(
        device == first ? in : bench.flow(device, host_space, machine.devices[device].space));
  }
  if (devices.size() > 1) {
    const SpaceId other = machine.devices[devices[1]].space;
    if (machine.route(space, other))
      ways.push_back({"peer", {bench.flow(devices[1], space, other)}});
    ways.push_back({"all", all_in});
  }
  return ways;
}

// Prints the rate of one way at one size, in turn with memcpy.
void measure(Bench& bench, const Way& way, std::size_t bytes, double bound, long long repeat) {
  const double share = bound / static_cast<double>(way.flows.size());
  const auto copies = static_cast<std::size_t>(
      std::clamp(share * seconds_of_run / static_cast<double>(bytes), 4.0, 2000.0));
  std::vector<double> ours, theirs;
  for (long long run = 0; run < repeat; ++run) {
    ours.push_back(bench.rate(way.flows, bytes, copies));
    theirs.push_back(memcpy_rate(bytes));
  }
  const std::string size =
      bytes < (1 << 20) ? fmt::format("{}KiB", bytes >> 10) : fmt::format("{}MiB", bytes >> 20);
  Line(way.name + "-" + size)
      .add("value", median(ours))
      .add("unit", "bytes/s")
      .add("reference", "memcpy")
      .add("reference_value", median(theirs))
      .add("bound", bound)
      .add("bytes", static_cast<double>(bytes))
      .print();
}

Machine machine_in_use(const std::string& devices) {
  EngineOptions options;
  options.devices = devices;
  Machine machine = Engine(options).machine();
  if (machine.spaces() > 1) return machine;
  require(devices.empty(), fmt::format("'{}': no device has memory of its own", devices));
  return Machine::parse("emulated:2,memory=256MiB,peer=6GB/s");
}

}  // namespace

void copies(const Settings& settings) {
  const Machine machine = machine_in_use(settings.text("devices"));
  const long long repeat = settings.integer("repeat", 7);
  std::size_t largest = sizes.back();
  for (const Device& device : machine.devices) {
    if (device.space != host_space) largest = std::min(largest, device.memory_bytes / 4);
  }
  Bench bench(machine, largest, settings.text("pin", "on") == "on");
  for (const Way& way : ways_of(machine, bench)) {
    const double bound = stated_rate(machine, way.flows);
    for (const std::size_t bytes : sizes) {
      if (bytes <= largest) measure(bench, way, bytes, bound, repeat);
    }
  }
}

}  // namespace quadriga::bench
