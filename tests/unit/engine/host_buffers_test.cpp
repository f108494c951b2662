// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/host_buffers_test.cpp: tiles without a home that fit the devices and the host's
// buffers together, and neither alone.
#include <gtest/gtest.h>
#include <quadriga/promise.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "base/random.h"
#include "unit/engine/engines.h"

namespace quadriga {
namespace {

constexpr std::int64_t rows = 64, cols = 8;
constexpr std::size_t tile_bytes = rows * cols * sizeof(double);  // a page
constexpr int tiles_of_device = 3, buffers = 4;
constexpr double long_enough = 300;  // Seconds, on however busy a machine.

struct Case {
  const char* devices;
  bool virtual_clock;
};

class HostBuffersTest : public testing::TestWithParam<Case> {
 protected:
  HostBuffersTest() {
    make_engine();
    for (Codelet* const codelet : {&set_, &sum_, &get_})
      codelet->cost = [](const Arguments&) { return Cost{"unit", 1, 1}; };
    set_.name = "set";
    set_.access = {Access::write};
    set_.cpu = [this](const Arguments& arguments) {
      all_submitted_.wait(false);
      std::fill_n(arguments.operands[0].as<double>(), rows * cols, arguments.param<double>());
    };
    sum_.name = "sum";
    sum_.access = {Access::read, Access::read, Access::update};
    sum_.cpu = [](const Arguments& arguments) {
      const auto value = [&](std::size_t i) { return arguments.operands[i].as<double>(); };
      for (std::int64_t i = 0; i < rows * cols; ++i) value(2)[i] += value(0)[i] - value(1)[i];
    };
    get_.name = "get";
    get_.access = {Access::read};
    get_.cpu = [](const Arguments& arguments) {
      *arguments.param<double*>() = arguments.operands[0].as<double>()[rows * cols - 1];
    };
  }

  void make_engine() {
    EngineOptions options;
    options.machine = Machine::parse(GetParam().devices);
    for (Device& device : options.machine->devices) {
      device.memory_bytes = tiles_of_device * tile_bytes;
      options.machine->kernels["unit"][device.rates][1] = 1e-5;
    }
    options.virtual_clock = GetParam().virtual_clock;
    options.host_memory = buffers * tile_bytes;
    devices_ = options.machine->devices.size();
    engine_.emplace(std::move(options));
  }

  /// Tasks of three operands on random devices, or preferably there; checks all tiles in the end.
  void run(std::size_t count, bool must_stay = true, std::uint64_t seed = 0) {
    Random random(count + 100 * seed);
    std::vector<Data> tiles;
    std::vector<double> expected;
    for (std::size_t i = 0; i < count; ++i) {
      tiles.push_back(engine_->temporary(rows, cols, DType::float64));
      expected.push_back(static_cast<double>(i));
      engine_->submit(set_, {{tiles[i], Access::write}}, expected[i]);
    }
    for (int task = 0; task < 200; ++task) {
      const std::size_t a = random.below(count);
      const std::size_t b = (a + 1 + random.below(count - 2)) % count;
      std::size_t c = random.below(count);
      while (c == a || c == b) c = (c + 1) % count;
      const auto device = static_cast<DeviceId>(random.below(devices_));
      engine_->submit(
          sum_, {{tiles[a], Access::read}, {tiles[b], Access::read}, {tiles[c], Access::update}},
          must_stay ? SubmitOptions{.device = device} : SubmitOptions{.owner = device});
      expected[c] += expected[a] - expected[b];
    }
    std::vector<double> found(count);
    for (std::size_t i = 0; i < count; ++i)
      engine_->submit(get_, {{tiles[i], Access::read}}, &found[i]);
    engine_->wait(long_enough);
    EXPECT_EQ(found, expected);
  }

  /// The same on so many engines, in which no tile is left; by a real clock on few.
  void run_several(std::size_t count) {
    const std::uint64_t seeds = GetParam().virtual_clock ? 20 : 3;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      SCOPED_TRACE(seed);
      make_engine();
      run(count, true, seed);
    }
  }

  Codelet set_, sum_, get_;
  std::size_t devices_ = 0;
  std::atomic<bool> all_submitted_ = true;  ///< Tasks that set a tile wait for it.
  std::optional<Engine> engine_;
};

INSTANTIATE_TEST_SUITE_P(Engine, HostBuffersTest,
                         testing::Values(Case{"emulated:1,memory=1MiB", false},
                                         Case{"emulated:1,memory=1MiB", true},
                                         Case{"emulated:2,memory=1MiB,peer=4GB/s", false},
                                         Case{"emulated:2,memory=1MiB,peer=4GB/s", true}),
                         [](const auto& given) {
                           return std::string(given.param.devices[9] == '1' ? "One" : "Two") +
                                  (given.param.virtual_clock ? "VirtualClock" : "Emulated");
                         });

TEST_P(HostBuffersTest, DevicesAndBuffersTogetherHoldAllButOne) {
  run(tiles_of_device + buffers - 1);
}

TEST_P(HostBuffersTest, AllDevicesAndBuffersTogetherHoldAllButOne) {
  run_several(tiles_of_device * devices_ + buffers - 1);
}

TEST_P(HostBuffersTest, WhoLeavesForAScarceBufferIsGone) {
  all_submitted_ = false;  // or a tile leaves before its reads are known, and is read meanwhile
  std::vector<Data> tiles;
  for (int i = 0; i <= tiles_of_device; ++i) {
    tiles.push_back(engine_->temporary(rows, cols, DType::float64));
    engine_->submit(set_, {{tiles.back(), Access::write}}, 1.0, SubmitOptions{.device = 0});
  }
  // Meanwhile what nobody needs is cleaned.
  double last = 0;
  for (int i = 0; i < 20; ++i)
    engine_->submit(get_, {{tiles.back(), Access::read}}, &last, SubmitOptions{.device = 0});
  all_submitted_ = true;
  all_submitted_.notify_all();
  engine_->wait(patience);
  const auto in_both = [&] {
    const std::vector<bool> on_host = engine_->valid(tiles, host_space);
    const std::vector<bool> on_device = engine_->valid(tiles, 1);
    int count = 0;
    for (std::size_t i = 0; i < tiles.size(); ++i) count += on_host[i] && on_device[i];
    return count;
  };
  // A tile leaves the device when its copy has ended, which no task waits for.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(patience);
  int found = in_both();
  while (found >= buffers / 2 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    found = in_both();
  }
  EXPECT_LT(found, buffers / 2) << "the first has left, from the third on they are scarce";
}

TEST_P(HostBuffersTest, WhatNeitherHoldsIsRefused) {
  try {
    run(static_cast<std::size_t>(tiles_of_device) * devices_ + buffers + 1);
    FAIL() << "more tiles than memory";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::too_large) << error.what();
  }
}

/// What one device has for another one comes by way of the host, where it needs a buffer.
class UnjoinedTest : public HostBuffersTest {};

INSTANTIATE_TEST_SUITE_P(Engine, UnjoinedTest,
                         testing::Values(Case{"emulated:3,memory=1MiB,peer=off", false},
                                         Case{"emulated:3,memory=1MiB,peer=off", true}),
                         [](const auto& given) {
                           return given.param.virtual_clock ? "VirtualClock" : "Emulated";
                         });

TEST_P(UnjoinedTest, DevicesAndBuffersTogetherHoldAllButWhatATaskNeedsAndOne) {
  run_several(tiles_of_device * devices_ + buffers - tiles_of_device - 1);
}

/// Beside a device that can run all of it.
class HostTasksTest : public HostBuffersTest {};

INSTANTIATE_TEST_SUITE_P(Engine, HostTasksTest,
                         testing::Values(Case{"emulated:1,memory=1MiB;cpu:1", false},
                                         Case{"emulated:1,memory=1MiB;cpu:1", true}),
                         [](const auto& given) {
                           return given.param.virtual_clock ? "VirtualClock" : "Emulated";
                         });

TEST_P(HostTasksTest, GoToADeviceIfTheyFindNoBuffer) {
  constexpr DeviceId device = 0, host = 1;
  std::vector<Data> tiles;
  for (int i = 0; i < buffers + tiles_of_device; ++i) {
    tiles.push_back(engine_->temporary(rows, cols, DType::float64));
    engine_->submit(set_, {{tiles.back(), Access::write}}, 1.0,
                    SubmitOptions{.device = i < buffers ? host : device});
  }
  engine_->wait(patience);
  engine_->submit(sum_,
                  {{tiles[buffers], Access::read},
                   {tiles[buffers + 1], Access::read},
                   {tiles[buffers + 2], Access::update}},
                  SubmitOptions{.owner = host});
  engine_->wait(patience);
}

/// It may be a receive's, which the task that finds no buffer leads to.
TEST_P(HostTasksTest, TilesLeaveTheHostBesideAnOpenPromise) {
  constexpr DeviceId device = 0, host = 1;
  std::optional<Promise> promise;
  Codelet detaching;
  detaching.name = "detaching";
  detaching.access = {Access::read};
  detaching.cpu = [&](const Arguments& arguments) { promise = *arguments.promise; };
  detaching.cost = set_.cost;
  detaching.detaches = detaching.host_only = true;
  double home[rows] = {};
  const Data known = engine_->data(home, rows, 1, rows, DType::float64);
  // Its body has run once another task of the only core has ended.
  const Future open =
      engine_->submit(detaching, {{known, Access::read}}, SubmitOptions{.device = host});
  std::vector<Data> tiles;
  for (int i = 0; i < buffers + tiles_of_device - 1; ++i) {
    tiles.push_back(engine_->temporary(rows, cols, DType::float64));
    engine_->wait(engine_->submit(set_, {{tiles[i], Access::write}}, 1.0,
                                  SubmitOptions{.device = i < buffers ? host : device}),
                  long_enough);
  }
  double found = 0;
  engine_->wait(engine_->submit(get_, {{tiles[buffers], Access::read}}, &found,
                                SubmitOptions{.device = host}),
                long_enough);
  EXPECT_EQ(found, 1);
  ASSERT_TRUE(promise);
  EXPECT_TRUE(promise->set_value());
  engine_->wait(open, long_enough);
}

TEST_P(HostTasksTest, GoToADeviceAsOftenAsItTakes) { run(tiles_of_device + buffers - 1, false); }

}  // namespace
}  // namespace quadriga
