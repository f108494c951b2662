// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/pipeline/bound_test.cpp: the bound beside a search over all shares.
#include "pipeline/bound.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "base/random.h"

namespace quadriga {
namespace {

/// The time that given shares need.
double time_of(const std::vector<StreamResource>& resources, const std::vector<double>& shares) {
  double time = 0;
  for (const StreamResource& r : resources) {
    double busy = r.fixed;
    for (std::size_t d = 0; d < shares.size(); ++d) busy += r.seconds[d] * shares[d];
    if (busy > 0) time = std::max(time, busy + r.idle);
  }
  return time;
}

/// The least time of all shares of so many steps.
double searched(const std::vector<StreamResource>& resources, std::size_t devices, int steps) {
  double best = std::numeric_limits<double>::infinity();
  std::vector<double> shares(devices);
  const auto search = [&](auto&& self, std::size_t device, int left) -> void {
    if (device + 1 == devices) {
      shares[device] = static_cast<double>(left) / steps;
      best = std::min(best, time_of(resources, shares));
      return;
    }
    for (int i = 0; i <= left; ++i) {
      shares[device] = static_cast<double>(i) / steps;
      self(self, device + 1, left - i);
    }
  };
  search(search, 0, steps);
  return best;
}

StreamResource of_device(std::size_t devices, std::size_t device, double seconds, double idle) {
  StreamResource made{"device", std::vector<double>(devices, 0.0), 0, idle};
  made.seconds[device] = seconds;
  return made;
}

TEST(StreamBound, EqualDevicesShareEqually) {
  const std::vector<StreamResource> resources{of_device(3, 0, 30, 1), of_device(3, 1, 30, 1),
                                              of_device(3, 2, 30, 1)};
  const StreamBound bound = stream_bound(resources, 3);
  EXPECT_NEAR(bound.seconds, 11, 1e-6);
  for (const double share : bound.shares) EXPECT_NEAR(share, 1.0 / 3, 1e-6);
}

TEST(StreamBound, ADeviceAloneOnItsBusTakesMore) {
  // Two on one bus, one on another: kernels take 10 each if equal, copies 24 for the two.
  std::vector<StreamResource> resources{of_device(3, 0, 30, 0), of_device(3, 1, 30, 0),
                                        of_device(3, 2, 30, 0)};
  resources.push_back({"bus 0", {36, 36, 0}, 0, 0});
  resources.push_back({"bus 1", {0, 0, 36}, 0, 0});
  const StreamBound bound = stream_bound(resources, 3);
  EXPECT_NEAR(bound.seconds, 18, 1e-6);
  EXPECT_NEAR(bound.shares[2], 0.5, 1e-6);
}

TEST(StreamBound, ASerialStageLimitsWhateverTheDevices) {
  std::vector<StreamResource> resources{of_device(2, 0, 10, 0), of_device(2, 1, 10, 0)};
  resources.push_back({"reading", {0, 0}, 7, 0});
  const StreamBound bound = stream_bound(resources, 2);
  EXPECT_NEAR(bound.seconds, 7, 1e-6);
  EXPECT_EQ(bound.limit, 2u);
}

TEST(StreamBound, ADeviceThatCantWorkTakesNothing) {
  const double never_done = std::numeric_limits<double>::infinity();
  const std::vector<StreamResource> resources{of_device(2, 0, never_done, 0),
                                              of_device(2, 1, 8, 0)};
  const StreamBound bound = stream_bound(resources, 2);
  EXPECT_NEAR(bound.seconds, 8, 1e-6);
  EXPECT_NEAR(bound.shares[1], 1, 1e-6);
  EXPECT_THROW(stream_bound(std::vector<StreamResource>{of_device(1, 0, never_done, 0)}, 1), Error);
}

TEST(StreamBound, EqualPiecesAreNotDivided) {
  const std::vector<StreamResource> resources{of_device(2, 0, 3, 0), of_device(2, 1, 3, 0)};
  EXPECT_NEAR(stream_bound(resources, 2).seconds, 1.5, 1e-6);
  EXPECT_NEAR(stream_bound(resources, 2, 3).seconds, 2, 1e-6) << "one device has two of three";
}

TEST(StreamBound, OfPiecesOnRandomMachinesNoDivisionBeatsIt) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::size_t devices = 1 + random.below(3);
    const std::size_t pieces = 1 + random.below(20);
    std::vector<StreamResource> resources;
    for (std::size_t d = 0; d < devices; ++d)
      resources.push_back(of_device(devices, d, 1 + 9 * random.uniform(), random.uniform()));
    const double alone = searched(resources, devices, static_cast<int>(pieces));
    EXPECT_NEAR(stream_bound(resources, devices, pieces).seconds, alone, 1e-6);
    StreamResource link{"link", std::vector<double>(devices, 0.0), 0, 0};
    for (double& seconds : link.seconds) seconds = 9 * random.uniform();
    resources.push_back(link);
    const double found = searched(resources, devices, static_cast<int>(pieces));
    const double bound = stream_bound(resources, devices, pieces).seconds;
    EXPECT_LE(bound, found * (1 + 1e-7));
    EXPECT_GE(bound, stream_bound(resources, devices).seconds * (1 - 1e-7));
  }
}

TEST(StreamBound, RandomMachinesAgreeWithASearch) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::size_t devices = 1 + random.below(3);
    std::vector<StreamResource> resources;
    for (std::size_t d = 0; d < devices; ++d)
      resources.push_back(of_device(devices, d, 1 + 9 * random.uniform(), random.uniform()));
    for (int link = 0; link < 2; ++link) {
      StreamResource made{"link", std::vector<double>(devices, 0.0), 0, 0};
      for (double& seconds : made.seconds) seconds = random.chance(0.6) ? 9 * random.uniform() : 0;
      resources.push_back(made);
    }
    if (random.chance(0.3))
      resources.push_back({"serial", std::vector<double>(devices, 0.0), 4 * random.uniform(), 0});
    const StreamBound bound = stream_bound(resources, devices);
    constexpr int steps = 200;
    const double found = searched(resources, devices, steps);
    // No shares beat it, and a grid of shares comes near.
    EXPECT_LE(bound.seconds, found * (1 + 1e-7));
    EXPECT_GE(bound.seconds, found - 2 * 20.0 / steps);
    EXPECT_LE(time_of(resources, bound.shares), bound.seconds * (1 + 1e-6));
  }
}

}  // namespace
}  // namespace quadriga
