// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/policies/earliest_finish.cpp: the policy earliest-finish: the task with the longest
// path to the end first, where it ends earliest with its copies.
#include <quadriga/machine.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "device/kinds.h"
#include "schedule/policies/built_in.h"
#include "schedule/policies/upward_ranks.h"

namespace quadriga {
namespace {

/// Seconds of a copy between two devices, by way of the host if no route joins them.
double copy_seconds(const Machine& machine, SpaceId from, SpaceId to, double bytes) {
  if (from == to) return 0;
  const double direct = machine.copy_seconds(from, to, bytes);
  if (std::isfinite(direct)) return direct;
  return machine.copy_seconds(from, host_space, bytes) +
         machine.copy_seconds(host_space, to, bytes);
}

/// The mean over all pairs of devices that run tasks, each with itself included.
double mean_copy_seconds(const Machine& machine, double bytes) {
  double sum = 0;
  double pairs = 0;
  for (const Device& from : machine.devices)
    for (const Device& to : machine.devices) {
      if (properties_of(from.kind).only_stores || properties_of(to.kind).only_stores) continue;
      const double seconds = copy_seconds(machine, from.space, to.space, bytes);
      if (!std::isfinite(seconds)) continue;
      sum += seconds;
      ++pairs;
    }
  return pairs > 0 ? sum / pairs : 0;
}

UpwardRanks ranks_for(const Machine& machine) {
  constexpr double bytes = 1 << 20;
  const double latency = mean_copy_seconds(machine, 0);
  return {latency, (mean_copy_seconds(machine, bytes) - latency) / bytes};
}

/// Heterogeneous earliest finish time. A device begins a task when it has done what it has and the
/// copies are there; idle devices take what they end sooner.
///
/// Source:  Topcuoglu, Hariri, Wu, IEEE TPDS 13 (3), 2002, without insertion into gaps.
class EarliestFinish final : public Policy {
 public:
  explicit EarliestFinish(const Machine& machine) : ranks_(ranks_for(machine)) {}

  PolicyTraits traits() const override { return {.follows_tasks = true, .ranks = true}; }
  void submitted(const TaskNews& news) override { ranks_.submitted(news); }
  void ended(std::uint64_t id) override { ranks_.ended(id); }
  double rank(const TaskView& task) override { return ranks_.rank(task.id); }

  std::size_t place(const PlaceQuestion& question) override {
    std::size_t best = 0;
    double earliest = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < question.candidates.size(); ++i) {
      const PlaceCandidate& c = question.candidates[i];
      const double end = std::max(c.queued_seconds, c.fetch_seconds) + c.kernel_seconds;
      if (end < earliest) earliest = end, best = i;
    }
    return best;
  }

  std::size_t victim(const StealQuestion& question) override {
    return most_queued(question.queued);
  }
  std::size_t choose(std::span<const StealCandidate> candidates) override {
    return greatest_gain(candidates);
  }

 private:
  UpwardRanks ranks_;
};

}  // namespace

std::unique_ptr<Policy> make_earliest_finish(const PolicyContext& context) {
  return std::make_unique<EarliestFinish>(context.machine);
}

}  // namespace quadriga
