// SPDX-License-Identifier: BSD-3-Clause
// bench/message_schedules.cpp: collectives on nodes that aren't here, by the virtual clock.
#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <numeric>

#include "base/random.h"
#include "benchmarks.h"
#include "line.h"
#include "message/schedules/simulation.h"
#include "message/schedules/steps.h"

namespace quadriga::bench {
namespace {

using namespace message;

struct Asked {
  TreeCollective kind = TreeCollective::broadcast;
  std::int64_t bytes = 0;
  int nodes = 1;
  Ports ports;
};

TreeCollective kind_named(const std::string& text) {
  for (const TreeCollective each :
       {TreeCollective::broadcast, TreeCollective::reduce, TreeCollective::all_reduce})
    if (name(each) == text) return each;
  fail(Errc::invalid_argument,
       fmt::format("schedules: no --kind '{}'; there are broadcast, reduce, allreduce", text));
}

Asked asked_by(const Settings& settings) {
  Asked asked;
  asked.kind = kind_named(settings.text("kind", "broadcast"));
  asked.bytes = settings.integer("bytes", 1 << 30);
  asked.nodes = static_cast<int>(settings.integer("nodes", 8));
  asked.ports.per_node = static_cast<int>(settings.integer("ports", 1));
  asked.ports.bytes_per_second = static_cast<double>(settings.integer("rate", 50'000'000'000));
  asked.ports.latency_seconds = static_cast<double>(settings.integer("latency", 2000, 0)) * 1e-9;
  asked.ports.at_devices = settings.text("at", "host") == "devices";
  return asked;
}

// What must cross the ports of the busiest node: all bytes once; for allreduce what a node neither
// begins with nor ends with alone, twice (Patarasuk and Yuan, JPDC 69(2), 2009).
double bound_of(const Asked& asked) {
  const double n = asked.nodes;
  const double times = asked.kind == TreeCollective::all_reduce ? 2 * (n - 1) / n : 1;
  return times * static_cast<double>(asked.bytes) /
         (asked.ports.per_node * asked.ports.bytes_per_second);
}

struct Found {
  double seconds = 0;
  SchedulePlan plan;
  double read_back = 0;  ///< Bytes that devices of other nodes than the root's send to their hosts.
};

Found run(const Cluster& cluster, const Asked& asked, const TreeOptions& options) {
  Found found;
  found.plan = plan_collective(cluster, {asked.kind, 0, {asked.bytes}, 8}, options);
  const Schedule schedule = schedule_of(cluster, found.plan);
  found.seconds = simulate(cluster, schedule).seconds;
  for (int rank = 0; rank < cluster.size(); ++rank)
    for (const RankStep& each : schedule[static_cast<std::size_t>(rank)].steps)
      if (each.kind == StepKind::copy && each.into.buffer == StepBuffer::stage &&
          cluster.place(rank).node != cluster.place(0).node)
        found.read_back += static_cast<double>(each.bytes);
  return found;
}

// By core, by node, then at random. Places are by core.
std::vector<int> order_of(const Cluster& cluster, int which, int nodes) {
  std::vector<int> order(static_cast<std::size_t>(cluster.size()));
  std::iota(order.begin(), order.end(), 0);
  const int per_node = cluster.size() / nodes;
  if (which == 1)
    for (int i = 0; i < cluster.size(); ++i)
      order[static_cast<std::size_t>(i)] = i % nodes * per_node + i / nodes;
  if (which > 1) {
    Random random(static_cast<std::uint64_t>(which));
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  }
  return order;
}

}  // namespace

void schedules(const Settings& settings) {
  const Asked asked = asked_by(settings);
  const std::string file = settings.text("machine");
  require(!file.empty(), "schedules: --machine names the description of a node");
  const Cluster cluster = Cluster::of(Machine::from_file(file), asked.nodes, asked.ports);
  const int orders = static_cast<int>(settings.integer("orders", 1));
  TreeOptions options;
  options.segment_bytes = settings.integer("segment", 0, 0);
  options.leaders = static_cast<int>(settings.integer("leaders", 0, 0));
  if (const std::string shape = settings.text("algorithm"); !shape.empty())
    options.shapes = {tree_shape(shape)};
  std::vector<double> seconds;
  Found first;
  for (int which = 0; which < orders; ++which) {
    Found found = run(cluster.ordered(order_of(cluster, which, asked.nodes)), asked, options);
    seconds.push_back(found.seconds);
    if (which == 0) first = std::move(found);
  }
  const auto [least, most] = std::ranges::minmax(seconds);
  Line line(name(asked.kind));
  line.add("value", seconds.front() * 1e3).add("unit", "ms").add("bound", bound_of(asked) * 1e3);
  line.add("predicted", first.plan.predicted_seconds * 1e3).add("orders", orders);
  line.add("spread", most / least).add("read_back", first.read_back);
  line.add("plan", first.plan.text());
  line.print();
}

}  // namespace quadriga::bench
