// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/stream_estimate.cpp: what chunks ask of the machine, and of one with a device more.
#include "pipeline/stream_estimate.h"

#include <quadriga/error.h>

#include <algorithm>
#include <string>
#include <utility>

#include "pipeline/links.h"
#include "pipeline/row_load.h"

namespace quadriga {
namespace {

/// The machine with one device more, like the last of these, on links of its own.
Machine with_one_more(const Machine& machine, std::vector<DeviceId>& devices) {
  Machine larger = machine;
  Device added = machine.devices[devices.back()];
  const SpaceId old = added.space;
  added.name += " (one more)";
  added.space = old == host_space ? host_space : static_cast<SpaceId>(machine.spaces());
  for (const Route& route : machine.routes) {
    const bool goes_in = route.from == host_space && route.to == old;
    const bool goes_out = route.from == old && route.to == host_space;
    if (old == host_space || (!goes_in && !goes_out)) continue;
    Route copy{goes_in ? host_space : added.space, goes_in ? added.space : host_space, {}};
    for (const int link : route.links) {
      copy.links.push_back(static_cast<int>(larger.links.size()));
      larger.links.push_back(machine.links[static_cast<std::size_t>(link)]);
    }
    larger.routes.push_back(std::move(copy));
  }
  devices.push_back(static_cast<DeviceId>(larger.devices.size()));
  larger.devices.push_back(std::move(added));
  return larger;
}

class Estimate {
 public:
  Estimate(const StagePlan& plan, const FlowOptions& options, std::span<const Chunk> chunks,
           std::span<const double> seconds)
      : plan_(plan), options_(options), chunks_(chunks), seconds_(seconds) {}

  std::vector<StreamResource> resources(const Machine& machine,
                                        const std::vector<DeviceId>& devices) const {
    std::vector<StreamResource> found;
    if (!devices.empty()) {
      StreamLoad load(machine, devices);
      for (const Chunk& each : chunks_) load.add(load_of(each, machine, devices));
      found = load.resources();
    }
    add_host(found, std::max<std::size_t>(1, devices.size()));
    return found;
  }

 private:
  double stated(std::size_t place) const { return place < seconds_.size() ? seconds_[place] : 0.0; }

  ChunkLoad load_of(const Chunk& like, const Machine& machine,
                    const std::vector<DeviceId>& devices) const {
    const Chunk chunk = plan_.completed(like);
    const StageSet passed = plan_.passed_by(chunk);
    ChunkLoad load{0, 0, std::vector<double>(devices.size(), 0.0)};
    for (const Segment& segment : plan_.segments()) {
      if (segment.kind != StageKind::kernel) continue;
      add_bytes(load, KernelRow(plan_.stages(), segment, passed), chunk);
      for (std::size_t s = segment.first; s < segment.last; ++s)
        if (passed.has(s)) add_kernel(load, s, chunk, machine, devices);
    }
    return load;
  }

  /// By its cost, or else by what was stated.
  void add_kernel(ChunkLoad& load, std::size_t s, const Chunk& chunk, const Machine& machine,
                  const std::vector<DeviceId>& devices) const {
    const Stage& stage = plan_.stages()[s];
    const auto params =
        stage.params && stage.codelet->cost ? stage.params(chunk) : std::vector<std::byte>{};
    std::vector<double> sums = load.kernel_seconds;
    if (add_seconds(sums, stage, chunk, params, machine, devices)) {
      load.kernel_seconds = std::move(sums);
      return;
    }
    if (stated(s + 1) <= 0)
      fail(Errc::unavailable, "estimate(): kernel '" + stage.name +
                                  "' has no cost that the machine's table knows; state its seconds "
                                  "a chunk");
    for (double& sum : load.kernel_seconds) sum += stated(s + 1);
  }

  /// Of all chunks on the host: as stated for the estimate, or else for the stage.
  double in_all(std::size_t place, const Pipeline::Seconds& seconds) const {
    if (stated(place) > 0 || !seconds) return stated(place) * static_cast<double>(chunks_.size());
    double sum = 0;
    for (const Chunk& each : chunks_) {
      const bool passes = place == 0 || plan_.passed_by(each).has(place - 1);
      if (passes) sum += seconds(each);
    }
    return sum;
  }

  void add_host(std::vector<StreamResource>& found, std::size_t width) const {
    double parallel = 0;
    const auto add = [&](const std::string& name, double seconds) {
      found.push_back({name, std::vector<double>(width, 0.0), seconds, 0});
    };
    add("source", in_all(0, options_.source_seconds));
    for (std::size_t s = 0; s < plan_.stages().size(); ++s) {
      const Stage& stage = plan_.stages()[s];
      if (stage.kind == StageKind::parallel)
        parallel += in_all(s + 1, stage.seconds);
      else if (stage.kind != StageKind::kernel)
        add(stage.name, in_all(s + 1, stage.seconds));
    }
    add("the host's cores", parallel / std::max(1, options_.threads));
  }

  const StagePlan& plan_;
  const FlowOptions& options_;
  const std::span<const Chunk> chunks_;
  const std::span<const double> seconds_;
};

}  // namespace

PipelineEstimate estimate_stream(const Machine& machine, const StagePlan& plan,
                                 const FlowOptions& options, std::span<const Chunk> chunks,
                                 std::span<const double> seconds) {
  require(!chunks.empty(), "estimate() needs chunks");
  for (const Stage& stage : plan.stages())
    if (stage.kind == StageKind::flat_map)
      fail(Errc::unavailable, "estimate(): nobody knows before what flat_map '" + stage.name +
                                  "' makes; estimate a pipeline of what follows it");
  std::vector<DeviceId> devices;
  if (plan.has_kernels()) devices = usable_devices(machine, plan.stages());
  const std::size_t width = std::max<std::size_t>(1, devices.size());
  const Estimate estimate(plan, options, chunks, seconds);
  std::vector<StreamResource> resources = estimate.resources(machine, devices);
  const StreamBound bound = stream_bound(resources, width);
  StreamResource& limit = resources[bound.limit];
  PipelineEstimate told{bound.seconds, limit.name, 0, bound.seconds, bound.shares};
  if (!devices.empty()) {
    std::vector<DeviceId> more = devices;
    const Machine larger = with_one_more(machine, more);
    told.one_device_more = stream_bound(estimate.resources(larger, more), width + 1).seconds;
  }
  limit.fixed /= 2;
  for (double& each : limit.seconds) each /= 2;
  told.without_limit = stream_bound(resources, width).seconds;
  return told;
}

}  // namespace quadriga
