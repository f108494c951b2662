// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/device/fair_share_test.cpp: worked examples of max-min fairness, and its definition.
#include "device/fair_share.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/random.h"

namespace quadriga {
namespace {

// A machine of links only; routes by the links they cross.
Machine links_and_routes(const std::vector<double>& rates,
                         const std::vector<std::vector<int>>& routes) {
  Machine machine;
  for (const double rate : rates) machine.links.push_back({"link", rate, 0});
  for (const std::vector<int>& links : routes) machine.routes.push_back({0, 1, links});
  return machine;
}

std::vector<double> rates_of(const Machine& machine, const std::vector<int>& flows,
                             const std::vector<double>& limits = {}) {
  FairShare share(machine);
  std::vector<double> rates(flows.size());
  share.rates(flows, rates, limits);
  return rates;
}

TEST(FairShare, OneFlowGetsItsNarrowestLink) {
  const Machine machine = links_and_routes({10, 4, 7}, {{0, 1, 2}});
  EXPECT_EQ(rates_of(machine, {0}), (std::vector<double>{4}));
}

TEST(FairShare, FlowsOfOneLinkGetEqualParts) {
  const Machine machine = links_and_routes({12}, {{0}, {0}});
  EXPECT_EQ(rates_of(machine, {0, 1, 0}), (std::vector<double>{4, 4, 4}));
}

TEST(FairShare, WhatANarrowFlowLeavesGoesToTheOthers) {
  // The textbook line: one long flow over both links, one short flow on each.
  const Machine machine = links_and_routes({10, 4}, {{0, 1}, {0}, {1}});
  EXPECT_EQ(rates_of(machine, {0, 1, 2}), (std::vector<double>{2, 8, 2}));
}

TEST(FairShare, LinkNamedTwiceCountsTwice) {
  const Machine machine = links_and_routes({12}, {{0, 0}, {0}});
  EXPECT_EQ(rates_of(machine, {0}), (std::vector<double>{6}));
  EXPECT_EQ(rates_of(machine, {0, 1}), (std::vector<double>{4, 4}));
}

TEST(FairShare, WhatALimitedFlowLeavesGoesToTheOthers) {
  constexpr double none = std::numeric_limits<double>::infinity();
  const Machine machine = links_and_routes({12}, {{0}, {0, 0}});
  EXPECT_EQ(rates_of(machine, {0, 0, 0}, {none, 2, none}), (std::vector<double>{5, 2, 5}));
  EXPECT_EQ(rates_of(machine, {0, 0, 0}, {3, 2, none}), (std::vector<double>{3, 2, 7}));
  EXPECT_EQ(rates_of(machine, {0, 0, 0}, {3, 2, 1}), (std::vector<double>{3, 2, 1}));
  EXPECT_EQ(rates_of(machine, {0, 0}, {9, none}), (std::vector<double>{6, 6})) << "no limit";
  EXPECT_EQ(rates_of(machine, {0, 1}, {none, 1}), (std::vector<double>{10, 1})) << "twice across";
}

TEST(FairShare, NoFlowsIsNoWork) {
  EXPECT_TRUE(rates_of(links_and_routes({1}, {{0}}), {}).empty());
}

TEST(FairShare, LinksImpliedByOthersAreLeftOut) {
  // 1 is wider than 0 and crossed by the same route; 2 is crossed by both routes and stays.
  const FairShare share(links_and_routes({5, 6, 8}, {{0, 1, 2}, {2}}));
  EXPECT_EQ(share.limiting_links(0).size(), 2u);
  EXPECT_EQ(share.limiting_links(1).size(), 1u);
}

// Max-min fair means: no link carries more than it can, and every flow has reached its limit or
// crosses a full link on which no other flow is faster.
void expect_fair(const Machine& machine, const std::vector<int>& flows,
                 const std::vector<double>& limits, const std::vector<double>& rates) {
  std::vector<double> load(machine.links.size(), 0);
  std::vector<double> fastest(machine.links.size(), 0);
  for (std::size_t i = 0; i < flows.size(); ++i) {
    for (const int link : machine.routes[flows[i]].links) {
      load[link] += rates[i];
      fastest[link] = std::max(fastest[link], rates[i]);
    }
  }
  for (std::size_t link = 0; link < load.size(); ++link) {
    EXPECT_LE(load[link], machine.links[link].bytes_per_second * (1 + 1e-9));
  }
  for (std::size_t i = 0; i < flows.size(); ++i) {
    EXPECT_LE(rates[i], limits[i]);
    bool limited = rates[i] == limits[i];
    for (const int link : machine.routes[flows[i]].links) {
      limited |= load[link] >= machine.links[link].bytes_per_second * (1 - 1e-9) &&
                 rates[i] >= fastest[link] * (1 - 1e-9);
    }
    EXPECT_TRUE(limited) << "flow " << i << " could be faster at no slower flow's cost";
  }
}

TEST(FairShare, RandomNetworksAreFair) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::vector<double> capacities(1 + random.below(8));
    for (double& capacity : capacities) capacity = 1 + static_cast<double>(random.below(20));
    std::vector<std::vector<int>> routes(1 + random.below(8));
    for (std::vector<int>& links : routes) {
      links.resize(1 + random.below(5));
      for (int& link : links) link = static_cast<int>(random.below(capacities.size()));
    }
    std::vector<int> flows(1 + random.below(12));
    for (int& flow : flows) flow = static_cast<int>(random.below(routes.size()));
    const Machine machine = links_and_routes(capacities, routes);
    std::vector<double> limits(flows.size(), std::numeric_limits<double>::infinity());
    expect_fair(machine, flows, limits, rates_of(machine, flows));
    for (double& limit : limits)
      if (random.chance(0.5)) limit = 0.25 * static_cast<double>(1 + random.below(40));
    expect_fair(machine, flows, limits, rates_of(machine, flows, limits));
  }
}

}  // namespace
}  // namespace quadriga
