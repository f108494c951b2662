// SPDX-License-Identifier: BSD-3-Clause
// bench/device_steps.cpp: what a collective of devices costs their hosts, counted in its plan.
#include <quadriga/error.h>

#include <algorithm>

#include "benchmarks.h"
#include "device/reference_machine.h"
#include "line.h"
#include "message/schedules/simulation.h"
#include "message/schedules/step_cache.h"

namespace quadriga::bench {
namespace {

using namespace message;

struct Counts {
  int messages = 0, reductions = 0, copies = 0;
};

// Of the rank that has most to do. Each step is queued by its host, which then finds its end.
Counts most_of(const Schedule& schedule) {
  Counts most;
  std::int64_t steps = -1;
  for (const RankSteps& rank : schedule) {
    if (static_cast<std::int64_t>(rank.steps.size()) <= steps) continue;
    steps = static_cast<std::int64_t>(rank.steps.size());
    most = {};
    for (const RankStep& each : rank.steps) {
      most.messages += each.kind == StepKind::send || each.kind == StepKind::receive;
      most.reductions += each.kind == StepKind::reduce;
      most.copies += each.kind == StepKind::copy;
    }
  }
  return most;
}

void print(TreeCollective kind, std::int64_t bytes, int ranks, double rate, bool as_host) {
  const CollectiveShape shape{kind, 0, {bytes}, 8};
  const RankOffer devices{rate, reference_machine().message};
  const RankOffer planned = as_host ? RankOffer{} : devices;
  const SchedulePlan plan = StepCache::plan(ranks, shape, {}, planned);
  const Schedule schedule = schedule_of(StepCache::cluster(ranks, planned), plan);
  const Counts counts = most_of(schedule);
  const double seconds = simulate(StepCache::cluster(ranks, devices), schedule).seconds;
  const double times = kind == TreeCollective::all_reduce ? 2.0 * (ranks - 1) / ranks : 1;
  Line line(name(kind));
  line.add("bytes", static_cast<double>(bytes)).add("planned_for", as_host ? "host" : "devices");
  line.add("segments", static_cast<int>(plan.segments.size()));
  line.add("segment", static_cast<double>(plan.options.segment_bytes))
      .add("messages", counts.messages);
  line.add("reductions", counts.reductions).add("copies", counts.copies);
  line.add("value", seconds * 1e6).add("unit", "us");
  line.add("bus", times * static_cast<double>(bytes) / seconds).add("plan", plan.text());
  line.print();
}

}  // namespace

void device_steps(const Settings& settings) {
  const auto ranks = static_cast<int>(settings.integer("count", 4));
  const auto rate = static_cast<double>(settings.integer("rate", 390'000'000'000));
  const auto bytes = settings.integer("bytes", 1 << 20);
  for (const TreeCollective kind :
       {TreeCollective::broadcast, TreeCollective::reduce, TreeCollective::all_reduce})
    for (const bool as_host : {true, false}) print(kind, bytes, ranks, rate, as_host);
}

}  // namespace quadriga::bench
