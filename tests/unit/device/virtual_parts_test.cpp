// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/device/virtual_parts_test.cpp: times, kernels at once and copies on links under a
// virtual clock, each without a backend.
#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <limits>
#include <string>
#include <vector>

#include "device/emulated/virtual_kernels.h"
#include "device/emulated/virtual_links.h"
#include "device/emulated/virtual_times.h"

namespace quadriga {
namespace {

constexpr double no_limit = std::numeric_limits<double>::infinity();
using Ends = std::vector<std::uint64_t>;

// Kernels "k" of 1000 ns at order 10; of two at once each takes 1250 ns, of three 3500 ns, which is
// longer than by turns.
Machine one_device() {
  Machine machine;
  Device device;
  device.name = "gpu0";
  device.kind = DeviceKind::emulated;
  device.space = 1;
  device.rates = "gpu";
  machine.devices = {device};
  machine.kernels["k"]["gpu"] = {{10, 1e-6}};
  machine.kernels["k*2"]["gpu"] = {{10, 1.25e-6}};
  machine.kernels["k*3"]["gpu"] = {{10, 3.5e-6}};
  return machine;
}

Launch launch_of(std::string_view kernel) {
  Launch launch;
  launch.name = "test";
  launch.cost = {kernel, 10, 1000};
  return launch;
}

// Times.

TEST(VirtualTimes, KernelTakesWhatTheTableSaysAndItsLaunch) {
  Machine machine = one_device();
  machine.launch_seconds = 2e-6;
  const VirtualTimes times(machine, 0, 0);
  EXPECT_DOUBLE_EQ(times.seconds(launch_of("k"), machine.devices[0]), 3e-6);
  EXPECT_EQ(times.seconds(launch_of(no_work), machine.devices[0]), 0);
}

TEST(VirtualTimes, KernelWithoutACostIsNamed) {
  const Machine machine = one_device();
  const VirtualTimes times(machine, 0, 0);
  try {
    times.seconds(launch_of(""), machine.devices[0]);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::unavailable);
    EXPECT_NE(std::string(error.what()).find("'test'"), std::string::npos);
  }
}

TEST(VirtualTimes, SpeedsOfKernelsAtOnceAreTheTablesAndNoLessThanByTurns) {
  const Machine machine = one_device();
  const VirtualTimes times(machine, 0, 0);
  const KernelSpeeds speeds = times.speeds(launch_of("k"), machine.devices[0]);
  EXPECT_DOUBLE_EQ(speeds[0], 1);
  EXPECT_DOUBLE_EQ(speeds[1], 0.8);
  EXPECT_DOUBLE_EQ(speeds[2], 1.0 / 3);
}

TEST(VirtualTimes, NoiseFollowsFromSeedAndNumberAndStaysInItsBounds) {
  const Machine machine = one_device();
  const VirtualTimes quiet(machine, 0, 1), noisy(machine, 0.1, 1), other(machine, 0.1, 2);
  EXPECT_EQ(quiet.with_noise(1000, 7), 1000);
  double least = 2000, most = 0;
  int alike = 0;
  for (std::uint64_t number = 0; number < 200; ++number) {
    const double drawn = noisy.with_noise(1000, number);
    EXPECT_EQ(drawn, noisy.with_noise(1000, number));
    alike += drawn == other.with_noise(1000, number);
    least = std::min(least, drawn);
    most = std::max(most, drawn);
  }
  EXPECT_GE(least, 900);
  EXPECT_LT(least, 920);
  EXPECT_LE(most, 1100);
  EXPECT_GT(most, 1080);
  EXPECT_LT(alike, 5);
  EXPECT_THROW(VirtualTimes(machine, 1, 0), Error);
}

// Kernels.

struct OnOneDevice {
  explicit OnOneDevice(int slots = 4, bool shares = true) : kernels(slots, shares) {}

  void begin(Nanoseconds when, std::uint64_t number, double work,
             KernelSpeeds speeds = taking_turns) {
    kernels.advance(when);
    kernels.begin({0, number, work, speeds});
  }
  /// Numbers of those that end at the next moment, which it becomes.
  Ends go_on() {
    const auto next = kernels.next();
    if (!next) return {};
    now = next->end;
    kernels.advance(now);
    Ends ended;
    kernels.take_done(
        [&](const VirtualKernels::Running& kernel) { ended.push_back(kernel.sequence); });
    return ended;
  }

  VirtualKernels kernels;
  Nanoseconds now = 0;
};

TEST(VirtualKernels, OneRunsAsLongAsItsWork) {
  OnOneDevice device;
  device.begin(100, 1, 50);
  EXPECT_EQ(device.go_on(), Ends{1});
  EXPECT_EQ(device.now, 150);
  EXPECT_FALSE(device.kernels.next());
}

TEST(VirtualKernels, WhatWasDoneBeforeAnotherBeganCounts) {
  OnOneDevice device;
  device.begin(0, 1, 100);
  device.begin(60, 2, 100);  // 40 are left of the first: 80 by turns
  EXPECT_EQ(device.go_on(), Ends{1});
  EXPECT_EQ(device.now, 140);
  EXPECT_EQ(device.go_on(), Ends{2});  // 60 were left
  EXPECT_EQ(device.now, 200);
}

TEST(VirtualKernels, EachHasItsOwnSpeedBesideOthers) {
  OnOneDevice device;
  device.begin(0, 1, 80, {1, 0.8, 0.5});
  device.begin(0, 2, 80);
  EXPECT_EQ(device.go_on(), Ends{1});
  EXPECT_EQ(device.now, 100);
  EXPECT_EQ(device.go_on(), Ends{2});
  EXPECT_EQ(device.now, 130);
}

TEST(VirtualKernels, MoreThanTheTableKnowsShareWhatItsLastRowTells) {
  OnOneDevice device(8);
  for (std::uint64_t number = 1; number <= 6; ++number)
    device.begin(0, number, 100, {1, 1, 1});  // three at once as fast as alone: six by halves
  EXPECT_EQ(device.go_on(), (Ends{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(device.now, 200);
}

TEST(VirtualKernels, SlotsAreCounted) {
  OnOneDevice device(2);
  device.begin(0, 1, 10);
  EXPECT_TRUE(device.kernels.has_slot());
  device.begin(0, 2, 20);
  EXPECT_FALSE(device.kernels.has_slot());
  EXPECT_EQ(device.go_on(), Ends{1});
  EXPECT_TRUE(device.kernels.has_slot());
  EXPECT_TRUE(VirtualKernels(0, true).has_slot()) << "at least one";
}

TEST(VirtualKernels, CoresShareNothing) {
  OnOneDevice cores(2, false);
  cores.begin(0, 1, 100);
  cores.begin(0, 2, 100);
  cores.kernels.advance(100);
  cores.kernels.take(1);
  EXPECT_TRUE(cores.kernels.has_slot());
  EXPECT_EQ(cores.kernels.next()->sequence, 2u);
}

// Links.

// Links of 1 and 2 bytes a nanosecond; routes over one, over the other and over both.
Machine two_links() {
  Machine machine;
  machine.links = {{"narrow", 1e9, 3e-9}, {"wide", 2e9, 4e-9}};
  machine.routes = {{0, 1, {0}}, {0, 2, {1}}, {1, 2, {0, 1}}};
  return machine;
}

struct OnLinks {
  void begin(Nanoseconds when, std::uint64_t number, int route, double bytes,
             double limit = no_limit) {
    links.begin(when, 0, number, route, bytes, limit);
    links.next_end(when);
  }
  /// Numbers of those that end at the next moment, which it becomes.
  Ends go_on() {
    now = links.next_end(now);
    Ends ended;
    links.take_ended(now, [&](StreamId, std::uint64_t sequence) { ended.push_back(sequence); });
    return ended;
  }

  VirtualLinks links{two_links()};
  Nanoseconds now = 0;
};

TEST(VirtualLinks, LatenciesOfARouteAddUp) {
  const OnLinks on;
  EXPECT_EQ(on.links.latency(0), 3);
  EXPECT_EQ(on.links.latency(2), 7);
}

TEST(VirtualLinks, NothingMovesAtFirstAndAtLast) {
  OnLinks on;
  EXPECT_EQ(on.links.next_end(0), never);
  on.begin(0, 1, 0, 100);
  EXPECT_EQ(on.go_on(), Ends{1});
  EXPECT_EQ(on.now, 100);
  EXPECT_EQ(on.links.next_end(on.now), never);
}

TEST(VirtualLinks, WhoComesLaterSharesAndWhoLeavesGivesBack) {
  OnLinks on;
  on.begin(0, 1, 0, 100);
  on.begin(50, 2, 0, 100);  // 50 are left of the first, at half the rate
  EXPECT_EQ(on.go_on(), Ends{1});
  EXPECT_EQ(on.now, 150);
  EXPECT_EQ(on.go_on(), Ends{2});
  EXPECT_EQ(on.now, 200);
}

TEST(VirtualLinks, LimitOfACopyLeavesTheRestToOthers) {
  OnLinks on;
  on.begin(0, 1, 1, 50, 0.5e9);
  on.begin(0, 2, 1, 150);
  EXPECT_EQ(on.go_on(), (Ends{1, 2}));
  EXPECT_EQ(on.now, 100);
}

TEST(VirtualLinks, FlowWhoseRateStaysKeepsItsEnd) {
  OnLinks on;
  on.begin(0, 1, 0, 1000);
  for (Nanoseconds at = 1; at < 1000; at += 7) {  // on the other link
    on.begin(at, static_cast<std::uint64_t>(at) + 1, 1, 2);
    on.now = at;
    EXPECT_EQ(on.go_on().size(), 1u);
  }
  EXPECT_EQ(on.go_on(), Ends{1});
  EXPECT_EQ(on.now, 1000);
}

}  // namespace
}  // namespace quadriga
