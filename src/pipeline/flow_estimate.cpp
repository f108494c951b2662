// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/flow_estimate.cpp: the bound of a run that hasn't begun.
#include <algorithm>
#include <string>
#include <utility>

#include "pipeline/flow.h"

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

}  // namespace

/// Adds what one chunk asks of the devices, whose last may be one more than the flow has.
void Flow::add_load(StreamLoad& load, const Chunk& like, std::span<const double> seconds) const {
  FlowItem item;
  item.chunk = Chunk(like.number());
  for (const Chunk::Field& field : like.fields()) item.chunk.lend(field.name, field.view);
  for (const Stage& stage : stages_)
    for (const FieldUse& use : stage.uses)
      if (use.shape && !use.is_temporary && !item.chunk.find(use.name)) {
        const FieldShape shape = use.shape(item.chunk);
        item.chunk.lend(use.name, {nullptr, shape.rows, shape.cols, shape.rows, shape.dtype});
      }
  ChunkLoad sum;
  std::vector<double> kernels(devices_.size(), 0.0);
  for (const auto& segment : segments_) {
    if (segment->kind != StageKind::kernel) continue;
    note_bytes(item, *segment);
    sum.bytes_in += item.load.bytes_in;
    sum.bytes_out += item.load.bytes_out;
    add_kernel_seconds(item, *segment, seconds, kernels);
  }
  kernels.resize(load.devices(), kernels.back());
  sum.kernel_seconds = kernels;
  load.add(sum);
}

void Flow::add_kernel_seconds(FlowItem& item, const Segment& segment,
                              std::span<const double> seconds, std::vector<double>& sums) const {
  for (std::size_t s = segment.first; s < segment.last; ++s) {
    Segment one;
    one.first = s;
    one.last = s + 1;
    item.params.assign(1, stages_[s].params && stages_[s].codelet->cost
                              ? stages_[s].params(item.chunk)
                              : std::vector<std::byte>{});
    note_costs(item, one);
    const bool is_given = s + 1 < seconds.size() && seconds[s + 1] > 0;
    if (!item.costs_known && !is_given)
      fail(Errc::unavailable, "estimate(): kernel '" + stages_[s].name +
                                  "' has no cost that the machine's table knows; state its seconds "
                                  "a chunk");
    for (std::size_t d = 0; d < sums.size(); ++d)
      sums[d] += item.costs_known ? item.kernel_seconds[d] : seconds[s + 1];
  }
}

PipelineEstimate Flow::estimate(std::span<const Chunk> chunks, std::span<const double> seconds) {
  require(!chunks.empty(), "estimate() needs chunks");
  const auto count = static_cast<double>(chunks.size());
  std::vector<DeviceId> more = devices_;
  const bool has_kernels = !devices_.empty();
  const Machine larger = has_kernels ? with_one_more(engine_.machine(), more) : Machine();
  const auto resources_of = [&](const Machine& machine, const std::vector<DeviceId>& devices) {
    std::vector<StreamResource> found;
    if (has_kernels) {
      StreamLoad load(machine, devices);
      for (const Chunk& each : chunks) add_load(load, each, seconds);
      found = load.resources();
    }
    const std::size_t width = std::max<std::size_t>(1, devices.size());
    double parallel = 0;
    for (std::size_t s = 0; s <= stages_.size() && s < seconds.size(); ++s) {
      const bool is_parallel = s > 0 && stages_[s - 1].kind == StageKind::parallel;
      if (is_parallel) parallel += seconds[s] * count;
      if (is_parallel || (s > 0 && stages_[s - 1].kind == StageKind::kernel)) continue;
      found.push_back({s == 0 ? "source" : stages_[s - 1].name, std::vector<double>(width, 0.0),
                       seconds[s] * count, 0});
    }
    found.push_back({"the host's cores", std::vector<double>(width, 0.0),
                     parallel / std::max(1, options_.threads), 0});
    return found;
  };
  const std::size_t width = std::max<std::size_t>(1, devices_.size());
  std::vector<StreamResource> resources = resources_of(engine_.machine(), devices_);
  const StreamBound bound = stream_bound(resources, width);
  PipelineEstimate told{bound.seconds, resources[bound.limit].name, 0, bound.seconds, bound.shares};
  if (has_kernels)
    told.one_device_more = stream_bound(resources_of(larger, more), width + 1).seconds;
  StreamResource& limit = resources[bound.limit];
  limit.fixed /= 2;
  for (double& each : limit.seconds) each /= 2;
  told.without_limit = stream_bound(resources, width).seconds;
  return told;
}

}  // namespace quadriga
