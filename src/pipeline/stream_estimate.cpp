// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/stream_estimate.cpp: what chunks ask of the machine, and of one with a device more.
#include "pipeline/stream_estimate.h"

#include <quadriga/error.h>

#include <algorithm>
#include <deque>
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

/// A chunk on its way from a segment up to the flat_map that splits it, or to the end.
struct Piece {
  Chunk chunk;
  StageSet passed;
  std::size_t first = 0;
  std::size_t last = 0;   ///< Behind its last segment.
  bool is_split = false;  ///< By the segment `last`.
};

/// Chunks like those of the source, and all that flat_maps make of them. They live until the end,
/// since parts may refer to what they are made of.
class Pieces {
 public:
  Pieces(const StagePlan& plan, std::span<const Chunk> chunks) : plan_(plan) {
    for (const Chunk& each : chunks) add(plan.completed(each, plan.last_generation() > 0), 0);
  }
  const std::deque<Piece>& all() const noexcept { return all_; }

 private:
  void add(Chunk chunk, std::size_t first) {
    const std::vector<Segment>& segments = plan_.segments();
    Piece& piece = all_.emplace_back();
    piece.passed = plan_.passed_by(chunk);
    piece.chunk = std::move(chunk);
    piece.first = piece.last = first;
    while (piece.last < segments.size() && !piece.is_split) {
      const Segment& segment = segments[piece.last];
      piece.is_split = segment.kind == StageKind::flat_map && piece.passed.has(segment.first);
      piece.last += piece.is_split ? 0 : 1;
    }
    if (piece.is_split) split(piece);
  }

  /// Errors: unavailable naming stage and chunk, with what its function says.
  void split(Piece& piece) {
    const Stage& stage = plan_.stages()[plan_.segments()[piece.last].first];
    try {
      const Pipeline::Source source = stage.split(piece.chunk);
      for (std::uint32_t part = 0;; ++part) {
        ChunkId id = piece.chunk.id();
        id.parts.push_back(part);
        Chunk made{id};
        made.stages = piece.chunk.stages;
        if (!source(made)) return;
        plan_.complete(made, plan_.passed_by(made));
        add(std::move(made), piece.last + 1);
      }
    } catch (const std::exception& error) {
      fail(Errc::unavailable, "estimate(): flat_map '" + stage.name +
                                  "' can't tell what it makes of chunk " + piece.chunk.id().text() +
                                  ": " + error.what());
    }
  }

  const StagePlan& plan_;
  std::deque<Piece> all_;
};

class Estimate {
 public:
  Estimate(const StagePlan& plan, const FlowOptions& options, std::span<const Chunk> chunks,
           std::span<const double> seconds)
      : plan_(plan), options_(options), pieces_(plan, chunks), seconds_(seconds) {}

  std::vector<StreamResource> resources(const Machine& machine,
                                        const std::vector<DeviceId>& devices) const {
    std::vector<StreamResource> found;
    if (!devices.empty()) {
      StreamLoad load(machine, devices);
      for (const Piece& each : pieces_.all())
        if (has_kernels(each)) load.add(load_of(each, machine, devices));
      found = load.resources();
    }
    add_host(found, std::max<std::size_t>(1, devices.size()));
    return found;
  }

 private:
  double stated(std::size_t place) const { return place < seconds_.size() ? seconds_[place] : 0.0; }

  std::span<const Segment> segments_of(const Piece& piece) const {
    return std::span(plan_.segments()).subspan(piece.first, piece.last - piece.first);
  }
  bool has_kernels(const Piece& piece) const {
    return std::ranges::any_of(segments_of(piece), [&](const Segment& segment) {
      return segment.kind == StageKind::kernel && piece.passed.has_any(segment);
    });
  }

  ChunkLoad load_of(const Piece& piece, const Machine& machine,
                    const std::vector<DeviceId>& devices) const {
    ChunkLoad load{0, 0, std::vector<double>(devices.size(), 0.0)};
    for (const Segment& segment : segments_of(piece)) {
      if (segment.kind != StageKind::kernel) continue;
      add_bytes(load, KernelRow(plan_.stages(), segment, piece.passed), piece.chunk);
      for (std::size_t s = segment.first; s < segment.last; ++s)
        if (piece.passed.has(s)) add_kernel(load, s, piece.chunk, machine, devices);
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

  /// Of all chunks from the source: as stated for the estimate, or else for the source.
  double source_seconds() const {
    double sum = 0;
    for (const Piece& each : pieces_.all())
      if (each.chunk.id().parts.empty()) sum += seconds_of(0, options_.source_seconds, each.chunk);
    return sum;
  }

  /// The same of a stage on the host. A flat_map's time is that of the chunks that it makes.
  double stage_seconds(std::size_t s) const {
    const Stage& stage = plan_.stages()[s];
    double sum = 0;
    for (const Piece& each : pieces_.all()) {
      const std::size_t made_by = each.first == 0 ? s + 1 : plan_.segments()[each.first - 1].first;
      const bool passes =
          stage.kind == StageKind::flat_map
              ? made_by == s && !each.chunk.id().parts.empty()
              : each.passed.has(s) && std::ranges::any_of(segments_of(each), [s](const auto& at) {
                  return at.first <= s && s < at.last;
                });
      if (passes) sum += seconds_of(s + 1, stage.seconds, each.chunk);
    }
    return sum;
  }

  double seconds_of(std::size_t place, const Pipeline::Seconds& seconds, const Chunk& chunk) const {
    return stated(place) > 0 || !seconds ? stated(place) : seconds(chunk);
  }

  void add_host(std::vector<StreamResource>& found, std::size_t width) const {
    double parallel = 0;
    const auto add = [&](const std::string& name, double seconds) {
      found.push_back({name, std::vector<double>(width, 0.0), seconds, 0});
    };
    add("source", source_seconds());
    for (std::size_t s = 0; s < plan_.stages().size(); ++s) {
      const Stage& stage = plan_.stages()[s];
      if (stage.kind == StageKind::parallel)
        parallel += stage_seconds(s);
      else if (stage.kind != StageKind::kernel)
        add(stage.name, stage_seconds(s));
    }
    add("the host's cores", parallel / std::max(1, options_.threads));
  }

  const StagePlan& plan_;
  const FlowOptions& options_;
  const Pieces pieces_;
  const std::span<const double> seconds_;
};

}  // namespace

PipelineEstimate estimate_stream(const Machine& machine, const StagePlan& plan,
                                 const FlowOptions& options, std::span<const Chunk> chunks,
                                 std::span<const double> seconds) {
  require(!chunks.empty(), "estimate() needs chunks");
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
