// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/tries_test.cpp: tasks of unknown cost are tried on kinds of devices that they
// would not go to, and go where they are quick afterwards.
//
// Bodies on the wrong kind wait until the tasks have run that should have passed them; where tasks
// come one by one they sleep there, and take no time elsewhere.
#include <gtest/gtest.h>
#include <quadriga/engine.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

namespace quadriga {
namespace {

constexpr double patience = 300;

/// Operands are at home on the host: without a reason to leave, all tasks stay there.
class TriesTest : public testing::Test {
 protected:
  TriesTest() {
    codelet_.cpu = [this](const Arguments& call) {
      const auto* const first = call.operands[0].as<double>();
      const bool is_home = first >= homes_.front().data() && first <= homes_.back().data();
      (is_home ? at_home_ : elsewhere_)();
      ++(is_home ? ran_at_home_ : ran_elsewhere_);
    };
    for (auto& home : homes_) data_.push_back(engine_.data(home.data(), 8, 1, 8, DType::float64));
  }
  void submit(std::size_t datum, DeviceId device = no_device) {
    engine_.submit(codelet_, {{data_[datum], Access::update}}, std::span<const std::byte>(),
                   {.device = device});
  }
  /// For bodies: none waits any more once one has waited in vain.
  void await(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(240);
    while (!condition() && !in_vain_) {
      sleep(1);
      if (std::chrono::steady_clock::now() > end) in_vain_ = true;
    }
  }
  static void sleep(int milliseconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  }

  static constexpr std::size_t tasks = 200;
  static constexpr DeviceId host = 1;
  std::vector<std::array<double, 8>> homes_{tasks};
  std::atomic<int> ran_at_home_{0};
  std::atomic<int> ran_elsewhere_{0};
  std::atomic<bool> in_vain_{false};
  std::function<void()> at_home_ = [] {};
  std::function<void()> elsewhere_ = [] {};
  Codelet codelet_{.name = "uneven", .access = {Access::update}};
  std::vector<Data> data_;
  Engine engine_{{.devices = "emulated:1,memory=1MiB;cpu:1"}};
};

TEST_F(TriesTest, AQuickDeviceTakesWhatWaitsForASlowOne) {
  at_home_ = [&] { await([&] { return ran_elsewhere_ >= 190; }); };
  for (std::size_t i = 0; i < tasks; ++i) submit(i);
  engine_.wait(patience);
  EXPECT_FALSE(in_vain_);
}

TEST_F(TriesTest, ASlowDeviceHoldsUpOneTask) {
  elsewhere_ = [&] { await([&] { return ran_at_home_ >= 190; }); };
  for (std::size_t i = 0; i < 10; ++i) submit(i, host);
  engine_.wait(patience);  // what a task takes at home is known from here on
  for (std::size_t i = 10; i < tasks; ++i) submit(i);
  engine_.wait(patience);
  EXPECT_FALSE(in_vain_);
  EXPECT_GE(ran_elsewhere_, 1);
}

TEST_F(TriesTest, TasksThatNothingRunsBesideAreTriedAsWell) {
  at_home_ = [] { sleep(10); };
  for (std::size_t i = 0; i < tasks; ++i) {
    submit(i);
    engine_.wait(patience);
  }
  EXPECT_GE(ran_elsewhere_, 50);
}

TEST_F(TriesTest, AChainIsTriedAsWell) {
  at_home_ = [] { sleep(10); };
  for (std::size_t i = 0; i < tasks; ++i) submit(0);
  engine_.wait(patience);
  EXPECT_GE(ran_elsewhere_, 50);
}

TEST_F(TriesTest, WhoNamesADeviceGetsIt) {
  for (std::size_t i = 0; i < tasks; ++i) submit(i, host);
  engine_.wait(patience);
  EXPECT_EQ(ran_elsewhere_, 0);
}

}  // namespace
}  // namespace quadriga
