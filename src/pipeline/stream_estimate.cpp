// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/stream_estimate.cpp: what chunks ask of the machine, and of one with a device more.
#include "pipeline/stream_estimate.h"

#include <quadriga/error.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "pipeline/host_time.h"
#include "pipeline/links.h"
#include "pipeline/row_load.h"

namespace quadriga {
namespace {

/// Whether copies between the host and other spaces cross a link, too.
bool is_shared(const Machine& machine, int link, SpaceId own) {
  return std::ranges::any_of(machine.routes, [&](const Route& route) {
    const bool is_others = route.from != own && route.to != own;
    return is_others && (route.from == host_space || route.to == host_space) &&
           std::ranges::count(route.links, link) > 0;
  });
}

/// The machine with one device more, like the last of these: it shares the links that devices
/// share, and has others of its own, each once.
Machine with_one_more(const Machine& machine, std::vector<DeviceId>& devices) {
  Machine larger = machine;
  Device added = machine.devices[devices.back()];
  const SpaceId old = added.space;
  added.name += " (one more)";
  added.space = old == host_space ? host_space : static_cast<SpaceId>(machine.spaces());
  std::map<int, int> like;  // links of the added device, by those of the last one
  for (const Route& route : machine.routes) {
    const bool goes_in = route.from == host_space && route.to == old;
    const bool goes_out = route.from == old && route.to == host_space;
    if (old == host_space || (!goes_in && !goes_out)) continue;
    Route copy{goes_in ? host_space : added.space, goes_in ? added.space : host_space, {}};
    for (const int link : route.links) {
      if (!like.contains(link) && is_shared(machine, link, old)) like[link] = link;
      if (!like.contains(link)) {
        like[link] = static_cast<int>(larger.links.size());
        larger.links.push_back(machine.links[static_cast<std::size_t>(link)]);
      }
      copy.links.push_back(like[link]);
    }
    larger.routes.push_back(std::move(copy));
  }
  devices.push_back(static_cast<DeviceId>(larger.devices.size()));
  larger.devices.push_back(std::move(added));
  return larger;
}

/// What a function may make of a chunk. One that makes more is taken for one that never ends.
constexpr std::uint32_t most_parts = 1'000'000;

/// A chunk on its way from a segment up to the flat_map that splits it, or to the end.
struct PassingChunk {
  Chunk& chunk;
  StageSet passed;
  std::size_t first = 0;
  std::size_t last = 0;   ///< Behind its last segment.
  bool is_split = false;  ///< By the segment `last`.
};

/// A machine, and what the chunks ask of it.
struct Demand {
  const Machine& machine;
  std::vector<DeviceId> devices;
  StreamLoad load{machine, devices};
};

/// Sums over chunks like those of the source, and all that flat_maps make of them. A chunk lives
/// until what is made of it has been added, since parts may refer to what they are made of.
class StreamSums {
 public:
  StreamSums(const StagePlan& plan, const FlowOptions& options, std::span<const double> seconds,
             std::vector<Demand>& demands)
      : plan_(plan),
        options_(options),
        seconds_(seconds),
        demands_(demands),
        stage_seconds_(plan.stages().size(), 0.0) {}

  void add_source_chunk(const Chunk& like) {
    Chunk chunk = plan_.completed(like, plan_.last_generation() > 0);
    source_seconds_ += seconds_of(0, options_.source_seconds, chunk);
    add(chunk, 0);
  }

  /// Chunks whose sizes are known: what they ask for lies on the line between two of them.
  void add_between(const Chunk& smallest, const Chunk& largest, std::span<const double> sizes) {
    const Asked small = asked_by(smallest);
    const Asked large = asked_by(largest);
    const auto [least, most] = std::ranges::minmax(sizes);
    for (const double size : sizes) {
      const double place = most > least ? (size - least) / (most - least) : 0;
      const auto between = [place](double x, double y) { return x == y ? x : x + place * (y - x); };
      source_seconds_ += between(small.source_seconds, large.source_seconds);
      for (std::size_t s = 0; s < stage_seconds_.size(); ++s)
        stage_seconds_[s] += between(small.stage_seconds[s], large.stage_seconds[s]);
      for (std::size_t d = 0; d < small.loads.size(); ++d) {
        ChunkLoad load = small.loads[d];
        load.bytes_in = between(load.bytes_in, large.loads[d].bytes_in);
        load.bytes_out = between(load.bytes_out, large.loads[d].bytes_out);
        for (std::size_t i = 0; i < load.kernel_seconds.size(); ++i)
          load.kernel_seconds[i] =
              between(load.kernel_seconds[i], large.loads[d].kernel_seconds[i]);
        demands_[d].load.add(load);
      }
    }
  }

  std::vector<StreamResource> resources(const Demand& demand) const {
    std::vector<StreamResource> found;
    if (!demand.devices.empty()) found = demand.load.resources();
    add_host(found, std::max<std::size_t>(1, demand.devices.size()));
    return found;
  }

 private:
  /// What one chunk asks for.
  struct Asked {
    double source_seconds = 0;
    std::vector<double> stage_seconds;
    std::vector<ChunkLoad> loads;  ///< By demand.
  };

  /// Errors: unavailable naming a flat_map: sizes don't tell what it makes.
  Asked asked_by(const Chunk& like) const {
    for (const Stage& stage : plan_.stages())
      if (stage.kind == StageKind::flat_map)
        fail(Errc::unavailable, "estimate(): sizes don't tell what flat_map '" + stage.name +
                                    "' makes of chunks; give it some");
    Chunk chunk = plan_.completed(like);
    Asked asked{seconds_of(0, options_.source_seconds, chunk),
                std::vector<double>(stage_seconds_.size(), 0.0),
                {}};
    const PassingChunk piece{chunk, plan_.passed_by(chunk), 0, plan_.segments().size()};
    add_host_stages(piece, asked.stage_seconds);
    for (const Demand& demand : demands_) asked.loads.push_back(load_of(piece, demand));
    return asked;
  }

  double stated(std::size_t place) const { return place < seconds_.size() ? seconds_[place] : 0.0; }

  double seconds_of(std::size_t place, const Pipeline::Seconds& seconds, const Chunk& chunk) const {
    return stated(place) > 0 || !seconds ? stated(place) : stated_seconds(seconds, chunk);
  }

  void add(Chunk& chunk, std::size_t first) {
    const std::vector<Segment>& segments = plan_.segments();
    PassingChunk piece{chunk, plan_.passed_by(chunk), first, first};
    while (piece.last < segments.size() && !piece.is_split) {
      const Segment& segment = segments[piece.last];
      piece.is_split = segment.kind == StageKind::flat_map && piece.passed.has(segment.first);
      piece.last += piece.is_split ? 0 : 1;
    }
    add_host_stages(piece, stage_seconds_);
    if (has_kernels(piece))
      for (Demand& demand : demands_) demand.load.add(load_of(piece, demand));
    if (piece.is_split) split(piece);
  }

  void split(const PassingChunk& piece) {
    const std::size_t place = plan_.segments()[piece.last].first;
    const Stage& stage = plan_.stages()[place];
    Pipeline::Source source;
    ask(stage, piece.chunk, [&] { source = stage.split(piece.chunk); });
    for (std::uint32_t part = 0;; ++part) {
      ChunkId id = piece.chunk.id();
      id.parts.push_back(part);
      Chunk made{id};
      made.stages = piece.chunk.stages;
      bool is_there = false;
      ask(stage, piece.chunk, [&] {
        if (part == most_parts)
          fail(Errc::unavailable, "it makes more than " + std::to_string(most_parts) +
                                      " chunks of one, as many as are estimated");
        is_there = source(made);
        if (is_there) plan_.complete(made, plan_.passed_by(made));
      });
      if (!is_there) return;
      // A flat_map's time is that of the chunks that it makes.
      stage_seconds_[place] += seconds_of(place + 1, stage.seconds, made);
      add(made, piece.last + 1);
    }
  }

  /// Errors: unavailable naming stage and chunk, with what its function says.
  template <class Ask>
  static void ask(const Stage& stage, const Chunk& chunk, Ask asked) {
    try {
      asked();
    } catch (const std::exception& error) {
      fail(Errc::unavailable, "estimate(): flat_map '" + stage.name +
                                  "' can't tell what it makes of chunk " + chunk.id().text() +
                                  ": " + error.what());
    }
  }

  std::span<const Segment> segments_of(const PassingChunk& piece) const {
    return std::span(plan_.segments()).subspan(piece.first, piece.last - piece.first);
  }
  bool has_kernels(const PassingChunk& piece) const {
    return std::ranges::any_of(segments_of(piece), [&](const Segment& segment) {
      return segment.kind == StageKind::kernel && piece.passed.has_any(segment);
    });
  }

  void add_host_stages(const PassingChunk& piece, std::vector<double>& sums) const {
    for (const Segment& segment : segments_of(piece)) {
      if (segment.kind == StageKind::kernel || segment.kind == StageKind::flat_map) continue;
      for (std::size_t s = segment.first; s < segment.last; ++s)
        if (piece.passed.has(s))
          sums[s] += seconds_of(s + 1, plan_.stages()[s].seconds, piece.chunk);
    }
  }

  ChunkLoad load_of(const PassingChunk& piece, const Demand& demand) const {
    ChunkLoad load{0, 0, std::vector<double>(demand.devices.size(), 0.0)};
    for (const Segment& segment : segments_of(piece)) {
      if (segment.kind != StageKind::kernel) continue;
      add_bytes(load, KernelRow(plan_.stages(), segment, piece.passed), piece.chunk);
      for (std::size_t s = segment.first; s < segment.last; ++s)
        if (piece.passed.has(s)) add_kernel(load, s, piece.chunk, demand);
    }
    return load;
  }

  /// By its cost, or else by what was stated.
  void add_kernel(ChunkLoad& load, std::size_t s, const Chunk& chunk, const Demand& demand) const {
    const Stage& stage = plan_.stages()[s];
    const auto params =
        stage.params && stage.codelet->cost ? stage.params(chunk) : std::vector<std::byte>{};
    std::vector<double> sums = load.kernel_seconds;
    if (add_seconds(sums, stage, chunk, params, demand.machine, demand.devices)) {
      load.kernel_seconds = std::move(sums);
      return;
    }
    if (stated(s + 1) <= 0)
      fail(Errc::unavailable, "estimate(): kernel '" + stage.name +
                                  "' has no cost that the machine's table knows; state its seconds "
                                  "a chunk");
    for (double& sum : load.kernel_seconds) sum += stated(s + 1);
  }

  void add_host(std::vector<StreamResource>& found, std::size_t width) const {
    double parallel = 0;
    const auto add = [&](const std::string& name, double seconds) {
      found.push_back({name, std::vector<double>(width, 0.0), seconds, 0});
    };
    add("source", source_seconds_);
    for (std::size_t s = 0; s < plan_.stages().size(); ++s) {
      const Stage& stage = plan_.stages()[s];
      if (stage.kind == StageKind::parallel)
        parallel += stage_seconds_[s];
      else if (stage.kind != StageKind::kernel)
        add(stage.name, stage_seconds_[s]);
    }
    add("the host's cores", parallel / std::max(1, options_.threads));
  }

  const StagePlan& plan_;
  const FlowOptions& options_;
  const std::span<const double> seconds_;
  std::vector<Demand>& demands_;
  double source_seconds_ = 0;
  std::vector<double> stage_seconds_;  ///< On the host.
};

}  // namespace

PipelineEstimate estimate_stream(const Machine& machine, const StagePlan& plan,
                                 const FlowOptions& options, std::span<const Chunk> chunks,
                                 std::span<const double> seconds, std::span<const double> sizes) {
  require(!chunks.empty(), "estimate() needs chunks");
  std::vector<DeviceId> devices;
  if (plan.has_kernels()) devices = usable_devices(machine, plan.stages());
  const std::size_t width = std::max<std::size_t>(1, devices.size());
  std::vector<DeviceId> more = devices;
  const Machine larger = devices.empty() ? Machine{} : with_one_more(machine, more);
  std::vector<Demand> demands;
  if (!devices.empty()) {
    demands.push_back({machine, devices});
    demands.push_back({larger, more});
  }
  const auto rows = std::ranges::count(plan.segments(), StageKind::kernel, &Segment::kind);
  StreamSums estimate(plan, options, seconds, demands);
  if (!sizes.empty())
    estimate.add_between(chunks.front(), chunks.back(), sizes);
  else
    for (const Chunk& each : chunks) estimate.add_source_chunk(each);
  const Demand none{machine, {}};
  std::vector<StreamResource> resources = estimate.resources(demands.empty() ? none : demands[0]);
  // Rows of kernels with the host between them may pass different devices.
  const std::size_t pieces =
      !devices.empty() && rows == 1 ? demands[0].load.equal_chunks() : std::size_t{0};
  const StreamBound bound = stream_bound(resources, width, pieces);
  StreamResource& limit = resources[bound.limit];
  PipelineEstimate told{bound.seconds, limit.name, 0, bound.seconds, bound.shares};
  if (!devices.empty())
    told.one_device_more = stream_bound(estimate.resources(demands[1]), width + 1, pieces).seconds;
  limit.fixed /= 2;
  for (double& each : limit.seconds) each /= 2;
  told.without_limit = stream_bound(resources, width, pieces).seconds;
  return told;
}

}  // namespace quadriga
