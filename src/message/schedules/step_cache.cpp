// SPDX-License-Identifier: BSD-3-Clause
// src/message/schedules/step_cache.cpp: plans for the processes of one host.
#include "message/schedules/step_cache.h"

#include <algorithm>
#include <numeric>

namespace quadriga::message {
namespace {

constexpr std::size_t most_known = 16;
// What a core reads of another process's memory, and what a message costs before that. Estimates:
// only their product counts, which decides from where on segments pay.
constexpr double bytes_per_second = 10e9;
constexpr double host_latency_seconds = StepCache::latency_seconds;
// Messages that pass through slots: their number counts, not their size.
constexpr std::int64_t small_bytes = 8192;

}  // namespace

Cluster StepCache::cluster(int ranks, const RankOffer& offer) {
  if (offer.on_devices())
    return Cluster::switched(ranks, offer.device_bytes_per_second, offer.message.latency_seconds,
                             offer.message.busy_seconds);
  return Cluster::host(ranks, bytes_per_second, host_latency_seconds);
}

SchedulePlan StepCache::plan(int ranks, const CollectiveShape& shape, TreeOptions forced,
                             const RankOffer& offer) {
  const std::int64_t total =
      std::accumulate(shape.bytes.begin(), shape.bytes.end(), std::int64_t{0});
  const Cluster joined = cluster(ranks, offer);
  if (total > small_bytes || !forced.shapes.empty() || forced.segment_bytes > 0)
    return plan_collective(joined, shape, forced);
  forced.shapes = {shape.bytes.size() > 1 ? TreeShape::linear : TreeShape::binomial};
  forced.segment_bytes = std::max<std::int64_t>(total, shape.element_bytes);
  return forced_plan(joined, shape, forced);
}

const StepCache::Known& StepCache::known(int ranks, int own, const CollectiveShape& shape,
                                         const TreeOptions& forced, const RankOffer& offer) {
  for (const Known& each : known_)
    if (each.shape == shape && each.forced == forced && each.offer == offer) return each;
  const SchedulePlan made = plan(ranks, shape, forced, offer);
  auto steps = std::make_shared<const RankSteps>(steps_of(cluster(ranks, offer), made, own));
  if (known_.size() < most_known) known_.emplace_back();
  Known& slot = known_[next_++ % most_known];
  slot = {shape, forced, offer, std::move(steps), made.text(), made.predicted_seconds};
  return slot;
}

}  // namespace quadriga::message
