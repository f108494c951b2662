// SPDX-License-Identifier: BSD-3-Clause
// src/message/schedules/cost.cpp: how long a plan takes: latency and bytes a level, wires shared.
//
// Hockney's model for each transfer (latency + bytes / rate), and for the whole what a pipeline
// takes: the way of its first segment, then the busiest resource's time a segment.
#include <algorithm>
#include <map>

#include "message/schedules/schedule.h"
#include "message/schedules/tree_choice.h"

namespace quadriga::message {
namespace {

// Per round: one segment of each tree that has one.
class Round {
 public:
  Round(const Cluster& cluster, double bytes)
      : cluster_(cluster),
        bytes_(bytes),
        busy_(cluster.wires().size()),
        combining_(index(cluster.size())) {}

  // Seconds until the last rank has the segment.
  double down(const RankTree& tree) {
    double last = 0;
    descend(tree, tree.root, 0, false, last);
    return last;
  }
  // Seconds until the root has combined all.
  double up(const RankTree& tree) { return ascend(tree, tree.root); }

  double period() const {
    double most = channel_;
    for (const double each : busy_) most = std::max(most, each);
    for (const double each : combining_) most = std::max(most, each);
    return most;
  }

 private:
  // A transfer that has its wires to itself; what it keeps them busy with is noted.
  double cross(const Wires& wires) {
    double latency = 0;
    double slowest = 0;
    for (const int each : wires) {
      const Wire& wire = cluster_.wires()[index(each)];
      const double seconds = bytes_ / wire.bytes_per_second;
      busy_[index(each)] += seconds + wire.occupied_seconds;
      latency += wire.latency_seconds;
      slowest = std::max(slowest, seconds);
    }
    channel_ = std::max(channel_, (latency + slowest) / transfers_in_flight);
    return latency + slowest;
  }
  double slowest(const Wires& wires) const {
    double most = 0;
    for (const int each : wires)
      most = std::max(most, bytes_ / cluster_.wires()[index(each)].bytes_per_second);
    return most;
  }

  // Children are served one after the other where they share a wire.
  void descend(const RankTree& tree, int rank, double at, bool on_stage, double& last) {
    double in_host = at;
    bool staged = on_stage;
    if (on_stage) at += cross(cluster_.from_host(rank));
    last = std::max(last, at);
    double waits_staged = 0;
    double waits = 0;
    for (const int child : tree.children[index(rank)]) {
      const bool stages = cluster_.is_staged(rank, child);
      if (stages && !staged) {
        in_host = at + cross(cluster_.to_host(rank));
        staged = true;
      }
      const Wires wires = cluster_.between(rank, child);
      double& waited = stages ? waits_staged : waits;
      const double arrives = (stages ? in_host : at) + waited + cross(wires);
      waited += slowest(wires);
      descend(tree, child, arrives, stages && cluster_.place(child).on_device, last);
    }
  }

  double ascend(const RankTree& tree, int rank) {
    double at = 0;
    const RankPlace& place = cluster_.place(rank);
    const double combines = place.combine_seconds + bytes_ * place.combine_seconds_per_byte;
    const std::vector<int>& children = tree.children[index(rank)];
    for (auto next = children.rbegin(); next != children.rend(); ++next) {
      const int child = *next;
      double arrives = ascend(tree, child);
      const bool stages = cluster_.is_staged(rank, child);
      if (stages) arrives += cross(cluster_.to_host(child));
      arrives += cross(cluster_.between(child, rank));
      if (stages) arrives += cross(cluster_.from_host(rank));
      combining_[index(rank)] += combines;
      at = std::max(at, arrives) + std::max(combines, place.combine_latency_seconds);
    }
    return at;
  }

  const Cluster& cluster_;
  const double bytes_;
  std::vector<double> busy_;
  std::vector<double> combining_;
  double channel_ = 0;
};

}  // namespace

double predicted_seconds(const Cluster& cluster, const SchedulePlan& plan) {
  if (plan.segments.empty()) return 0;
  // Of equal size, but for the last one.
  const double bytes = static_cast<double>(
      std::ranges::max_element(plan.segments, {}, &ScheduleSegment::bytes)->bytes);
  const std::size_t trees = std::max(plan.up.size(), plan.down.size());
  const std::size_t used = std::min(trees, plan.segments.size());
  Round round(cluster, bytes);
  double fill = 0;
  for (std::size_t tree = 0; tree < used; ++tree) {
    double seconds = 0;
    if (!plan.up.empty()) seconds += round.up(plan.up[tree]);
    if (!plan.down.empty()) seconds += round.down(plan.down[tree]);
    fill = std::max(fill, seconds);
  }
  double total = 0;
  for (const ScheduleSegment& each : plan.segments) total += static_cast<double>(each.bytes);
  const double rounds = total / (bytes * static_cast<double>(used));
  // Trees of one round share wires from the beginning.
  return fill + std::max(0.0, rounds - (used == 1 ? 1 : 0)) * round.period();
}

}  // namespace quadriga::message
