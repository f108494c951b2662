// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/schedule_test.cpp: schedules of all kinds deliver what they must.
#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "message/schedules/simulation.h"
#include "message/schedules/step_cache.h"
#include "sanitized.h"
#include "unit/message/schedule_cases.h"

namespace quadriga::message::testing {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

std::vector<RankMemory> draw_memory(Random& random, int ranks,
                                    const std::vector<std::size_t>& sizes) {
  std::vector<RankMemory> all;
  for (int rank = 0; rank < ranks; ++rank) {
    all.emplace_back(sizes[index(rank)]);
    for (std::byte& each : all.back()) each = static_cast<std::byte>(random.below(256));
  }
  return all;
}

struct Sizes {
  std::vector<std::size_t> input, output;
};

Sizes sizes_of(const CollectiveShape& shape, int ranks) {
  Sizes sizes;
  const auto total = static_cast<std::size_t>(
      std::accumulate(shape.bytes.begin(), shape.bytes.end(), std::int64_t{0}));
  for (int rank = 0; rank < ranks; ++rank) {
    const bool gathers = shape.kind == TreeCollective::all_gather;
    const bool scatters = shape.kind == TreeCollective::reduce_scatter;
    const auto part = static_cast<std::size_t>(shape.bytes[gathers || scatters ? index(rank) : 0]);
    sizes.input.push_back(gathers ? part : total);
    sizes.output.push_back(scatters ? part : total);
  }
  return sizes;
}

// What a rank must have; nothing if it is of no account.
RankMemory expected(const CollectiveShape& shape, const std::vector<RankMemory>& input, int rank) {
  if (shape.kind == TreeCollective::reduce && rank != shape.root) return {};
  if (shape.kind == TreeCollective::all_gather) {
    RankMemory all;
    for (const RankMemory& each : input) all.insert(all.end(), each.begin(), each.end());
    return all;
  }
  RankMemory sum(input.front().size());
  for (const RankMemory& each : input)
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] =
          static_cast<std::byte>(static_cast<unsigned>(sum[i]) + static_cast<unsigned>(each[i]));
  if (shape.kind == TreeCollective::broadcast) return input[index(shape.root)];
  if (shape.kind != TreeCollective::reduce_scatter) return sum;
  const auto begin =
      std::accumulate(shape.bytes.begin(), shape.bytes.begin() + rank, std::int64_t{0});
  return {sum.begin() + begin, sum.begin() + begin + shape.bytes[index(rank)]};
}

// A broadcast sends from its output.
std::vector<RankMemory> outputs_before(const CollectiveShape& shape,
                                       const std::vector<RankMemory>& input) {
  return shape.kind == TreeCollective::broadcast ? input : std::vector<RankMemory>{};
}

TEST(Schedule, AllCollectivesDeliverExactly) {
  for (std::uint64_t seed = 0; seed < (is_sanitized ? 100 : 400); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Cluster cluster = draw_cluster(random);
    const CollectiveShape shape = draw_shape(random, cluster);
    const SchedulePlan plan = plan_collective(cluster, shape, draw_options(random));
    SCOPED_TRACE(plan.text());
    const Schedule schedule = schedule_of(cluster, plan);
    const Sizes sizes = sizes_of(shape, cluster.size());
    const std::vector<RankMemory> input = draw_memory(random, cluster.size(), sizes.input);
    const CarriedOut got =
        carry_out(random, schedule, input, sizes.output, outputs_before(shape, input));
    ASSERT_EQ(got.fault, "");
    for (int rank = 0; rank < cluster.size(); ++rank) {
      const RankMemory wanted = expected(shape, input, rank);
      if (!wanted.empty()) {
        ASSERT_EQ(got.output[index(rank)], wanted) << "rank " << rank;
      }
    }
    // The virtual clock takes the same steps to their end.
    EXPECT_GE(simulate(cluster, schedule).seconds, 0);
  }
}

TEST(Schedule, StepsAreBounded) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Cluster cluster = draw_cluster(random);
    const CollectiveShape shape = draw_shape(random, cluster);
    const SchedulePlan plan = plan_collective(cluster, shape, draw_options(random));
    const auto ranks = static_cast<std::size_t>(cluster.size());
    std::size_t all = 0;
    for (const RankSteps& each : schedule_of(cluster, plan)) {
      all += each.steps.size();
      for (const std::int64_t used : {each.work_bytes, each.stage_bytes})
        EXPECT_LE(used, 4 * static_cast<std::int64_t>(plan.up.size() + plan.down.size()) *
                            plan.options.segment_bytes * (cluster.size() + 2));
    }
    // Each edge of a tree: a send, a receive, a copy to the host and one from there, a reduction.
    const std::size_t phases = (plan.up.empty() ? 0 : 1) + (plan.down.empty() ? 0 : 1);
    EXPECT_LE(all, plan.segments.size() * phases * (5 * ranks + 1));
  }
}

TEST(Schedule, ReproducibleReductionsCombineTheSameAnywhere) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Cluster first = draw_cluster(random);
    std::vector<int> order(index(first.size()));
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    CollectiveShape shape = draw_shape(random, first);
    shape.kind = random.chance(0.5) ? TreeCollective::reduce : TreeCollective::all_reduce;
    shape.bytes = {40 * shape.element_bytes};
    const Sizes sizes = sizes_of(shape, first.size());
    const std::vector<RankMemory> input = draw_memory(random, first.size(), sizes.input);
    std::vector<RankMemory> results;
    for (const Cluster& cluster :
         {first, first.ordered(order), Cluster::host(first.size(), 1e9, 1e-6)}) {
      TreeOptions options = draw_options(random);
      options.reproducible = true;
      const SchedulePlan plan = plan_collective(cluster, shape, options);
      const CarriedOut got =
          carry_out(random, schedule_of(cluster, plan), input, sizes.output, {}, true);
      ASSERT_EQ(got.fault, "");
      results.push_back(got.output[index(shape.root)]);
    }
    EXPECT_EQ(results[0], results[1]);
    EXPECT_EQ(results[0], results[2]);
  }
}

TEST(Schedule, DirectExchangesOfAnySizes) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const int ranks = 1 + static_cast<int>(random.below(7));
    // Up to two parcels for each ordered pair, oneself included.
    std::vector<std::vector<Parcel>> sends(index(ranks)), receives(index(ranks));
    for (int from = 0; from < ranks; ++from)
      for (int to = 0; to < ranks; ++to)
        for (std::uint64_t count = random.below(3); count > 0; --count) {
          const auto bytes = static_cast<std::int64_t>(random.below(5));
          sends[index(from)].push_back({to, bytes, 0});
          receives[index(to)].push_back({from, bytes, 0});
        }
    std::vector<std::size_t> given, got;
    Schedule schedule;
    for (int rank = 0; rank < ranks; ++rank) {
      std::int64_t from = 0;
      std::int64_t into = 0;
      for (Parcel& each : sends[index(rank)]) each.offset = std::exchange(from, from + each.bytes);
      for (Parcel& each : receives[index(rank)])
        each.offset = std::exchange(into, into + each.bytes);
      given.push_back(static_cast<std::size_t>(from));
      got.push_back(static_cast<std::size_t>(into));
      schedule.push_back(direct_steps(rank, ranks, sends[index(rank)], receives[index(rank)]));
    }
    const std::vector<RankMemory> input = draw_memory(random, ranks, given);
    const CarriedOut result = carry_out(random, schedule, input, got, {});
    ASSERT_EQ(result.fault, "");
    for (int to = 0; to < ranks; ++to) {
      RankMemory wanted;
      for (int from = 0; from < ranks; ++from)
        for (const Parcel& each : sends[index(from)])
          if (each.peer == to) {
            const auto begin = input[index(from)].begin() + each.offset;
            wanted.insert(wanted.end(), begin, begin + each.bytes);
          }
      EXPECT_EQ(result.output[index(to)], wanted);
    }
  }
}

TEST(ScheduleTree, EveryShapeSpansItsPositions) {
  for (const TreeShape shape : tree_shapes)
    for (int count = 1; count < 40; ++count)
      for (const int half : {0, 1}) {
        const std::vector<int> parents = parents_of(shape, count, half);
        EXPECT_EQ(parents[0], -1);
        for (int i = 1; i < count; ++i) {
          int steps = 0;
          for (int at = i; at != 0 && steps <= count; ++steps) at = parents[index(at)];
          EXPECT_LE(steps, count - 1) << name(shape) << " of " << count;
        }
      }
  EXPECT_EQ(tree_shape("binomial"), TreeShape::binomial);
  EXPECT_THROW(static_cast<void>(tree_shape("star")), Error);
}

TEST(ScheduleTree, GroupsAreCrossedOnceWhereverRanksAre) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    const Cluster cluster = draw_cluster(random);
    const int root = static_cast<int>(random.below(static_cast<std::uint64_t>(cluster.size())));
    const RankTree tree = hierarchical_tree(cluster, {root, {TreeShape::chain}, -1, 0});
    int crossings = 0;
    for (int rank = 0; rank < cluster.size(); ++rank)
      if (tree.parent[index(rank)] >= 0)
        crossings += cluster.place(rank).node != cluster.place(tree.parent[index(rank)]).node;
    EXPECT_EQ(crossings, cluster.nodes() - 1);
  }
}

TEST(SchedulePlan, LongReductionsTakeWhatTheMachinesTableSaysOfManyBytes) {
  Machine machine = Machine::parse("emulated:1,memory=1MiB");
  const auto combines = [&] {
    return Cluster::of(machine, 1, {}).place(0).combine_seconds_per_byte;
  };
  const std::string column = machine.devices[0].rates;
  machine.kernels["bytes"][column] = {{1000, 1e-3}};  // 1e12 bytes a second
  const double by_one = combines();
  EXPECT_DOUBLE_EQ(by_one, 3e-12) << "two are read and one is written";
  machine.kernels["bytes"][column] = {{100, 1e-4}, {1000, 1e-3}};
  EXPECT_DOUBLE_EQ(combines(), by_one) << "how few take long says nothing of many";
}

TEST(SchedulePlan, WhatIsForcedIsKeptAndNonsenseIsRefused) {
  const Cluster cluster = Cluster::host(5, 1e10, 1e-6);
  const CollectiveShape shape{TreeCollective::broadcast, 2, {8000}, 8};
  TreeOptions options;
  options.shapes = {TreeShape::binary};
  options.segment_bytes = 100;
  const SchedulePlan plan = plan_collective(cluster, shape, options);
  EXPECT_EQ(plan.options.segment_bytes, 96);
  EXPECT_EQ(plan.segments.size(), 84U);
  EXPECT_EQ(plan.down.front().children[2], (std::vector<int>{3, 4}));
  EXPECT_THROW(plan_collective(cluster, {TreeCollective::broadcast, 5, {8}, 8}, {}), Error);
  EXPECT_THROW(plan_collective(cluster, {TreeCollective::broadcast, 0, {9}, 8}, {}), Error);
  EXPECT_THROW(plan_collective(cluster, {TreeCollective::all_gather, 0, {8}, 8}, {}), Error);
}

// Each step costs the host an agreement, a launch and a query, however fast the devices' links are.
TEST(SchedulePlan, DevicesGetSegmentsThatAreWorthTheirHosts) {
  constexpr std::int64_t large = 1 << 30;
  const RankOffer devices{390e9, {60e-6, 10e-6}}, host;
  const auto steps_for = [&](TreeCollective kind, std::int64_t bytes, const RankOffer& planned) {
    StepCache cache;
    return cache.steps(4, 1, {kind, 0, {bytes}, 8}, {}, planned)->steps.size();
  };
  const auto seconds_for = [&](TreeCollective kind, std::int64_t bytes, const RankOffer& planned) {
    const SchedulePlan plan = StepCache::plan(4, {kind, 0, {bytes}, 8}, {}, planned);
    const Cluster cluster = StepCache::cluster(4, devices);
    return simulate(cluster, schedule_of(StepCache::cluster(4, planned), plan)).seconds;
  };
  for (const TreeCollective kind :
       {TreeCollective::broadcast, TreeCollective::reduce, TreeCollective::all_reduce}) {
    EXPECT_LT(2 * steps_for(kind, 1 << 20, devices), steps_for(kind, 1 << 20, host)) << name(kind);
    for (const std::int64_t bytes : {std::int64_t{1} << 20, large})
      EXPECT_LT(seconds_for(kind, bytes, devices), seconds_for(kind, bytes, host))
          << name(kind) << " of " << bytes;
  }
}

// What messages cost is the machine's: where they cost less, more segments pay.
TEST(SchedulePlan, DevicesGetMoreSegmentsWhereMessagesCostLess) {
  const CollectiveShape shape{TreeCollective::broadcast, 0, {std::int64_t{1} << 24}, 8};
  const auto segments = [&](const MessageCost& cost) {
    return StepCache::plan(4, shape, {}, {390e9, cost}).segments.size();
  };
  EXPECT_GT(segments({5e-6, 1e-6}), segments({60e-6, 10e-6}));
  StepCache cache;
  EXPECT_NE(cache.steps(4, 1, shape, {}, {390e9, {5e-6, 1e-6}}),
            cache.steps(4, 1, shape, {}, {390e9, {60e-6, 10e-6}}));
}

TEST(RankOffer, OnlyNumbersThatTimesFollowFromAreBelieved) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  constexpr double no_number = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(RankOffer{}.is_valid());
  EXPECT_TRUE((RankOffer{390e9, {60e-6, 10e-6}}.is_valid()));
  for (const double rate : {-1.0, 1e-300, 1e300, infinite, -infinite, no_number})
    EXPECT_FALSE((RankOffer{rate, {60e-6, 10e-6}}.is_valid())) << rate;
  for (const double seconds : {-1e-6, 2.0, infinite, no_number}) {
    EXPECT_FALSE((RankOffer{390e9, {seconds, 0}}.is_valid())) << seconds;
    EXPECT_FALSE((RankOffer{390e9, {1, seconds}}.is_valid())) << seconds;
  }
}

TEST(RankOffer, AllTogetherCanWhatTheSlowestCan) {
  const RankOffer fast{390e9, {5e-6, 2e-6}}, slow{20e9, {60e-6, 1e-6}}, both{20e9, {60e-6, 2e-6}};
  EXPECT_EQ(fast.and_also(slow), both);
  EXPECT_EQ(slow.and_also(fast), both);
  EXPECT_FALSE(fast.and_also({}).on_devices());
}

}  // namespace
}  // namespace quadriga::message::testing
