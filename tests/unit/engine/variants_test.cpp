// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/variants_test.cpp: which variant of a codelet runs where; CUDA devices stand on
// the virtual clock, so that their variants are functions of the host.
#include <gtest/gtest.h>
#include <quadriga/engine.h>

#include <array>
#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <vector>

namespace quadriga {
namespace {

class VariantsTest : public testing::Test {
 protected:
  VariantsTest() {
    codelet_.name = "both";
    codelet_.access = {Access::update};
    codelet_.cpu = [this](const Arguments&) { ++on_host_; };
    codelet_.cuda = [this](const Arguments&) { ++on_device_; };
    codelet_.cost = [](const Arguments&) { return Cost{"unit", 1, 1}; };
    codelet_.host_only = true;
  }

  // One device with a number of streams, and cores beside it.
  static EngineOptions options_with(DeviceKind kind, int cores) {
    EngineOptions options;
    options.virtual_clock = true;
    options.trace = true;
    options.machine = Machine::parse(cores ? "emulated:1,streams=3;cpu:" + std::to_string(cores)
                                           : "emulated:1,streams=3");
    options.machine->devices.front().kind = kind;
    for (const char* const rates : {"emulated", "cpu", ""})
      options.machine->kernels["unit"][rates][1] = 1e-5;
    return options;
  }
  void run(DeviceKind kind, int cores = 0, DeviceId device = no_device) {
    std::vector<double> home(8);
    Engine engine(options_with(kind, cores));
    const Data data = engine.data(home.data(), 8, 1, 8, DType::float64);
    for (int i = 0; i < 10; ++i)
      engine.submit(codelet_, {{data, Access::update}}, std::span<const std::byte>(),
                    {.device = device});
    engine.wait(300);
  }

  Codelet codelet_;
  int on_host_ = 0;
  int on_device_ = 0;
};

TEST_F(VariantsTest, WithACudaVariantNoHostIsNeeded) {
  run(DeviceKind::cuda);
  EXPECT_EQ(on_device_, 10);
}

TEST_F(VariantsTest, WithoutOneTheHostIs) {
  codelet_.cuda = nullptr;
  run(DeviceKind::cuda);
  EXPECT_EQ(on_host_, 10);
}

TEST_F(VariantsTest, OtherDevicesDontRunWhatNeedsTheHost) {
  run(DeviceKind::emulated);
  EXPECT_EQ(on_host_, 10);
}

TEST_F(VariantsTest, CoresBesideADeviceRunBoth) {
  run(DeviceKind::cuda, 2, 1);
  EXPECT_EQ(on_host_, 10);
  run(DeviceKind::cuda, 2, 0);
  EXPECT_EQ(on_device_, 10);
}

TEST_F(VariantsTest, WithoutAnyTheTaskIsRefused) {
  codelet_.cpu = nullptr;
  EXPECT_THROW(run(DeviceKind::emulated), Error);
}

// How long a task takes is learned by kind of device, not of them all together. The times are far
// apart, as other programs hold some tasks up.
TEST(MeasuredTest, TasksGoWhereTheyAreQuick) {
  std::vector<std::array<double, 8>> homes(40);
  std::atomic<int> elsewhere{0};
  Codelet codelet{.name = "uneven", .access = {Access::update}};
  codelet.cpu = [&](const Arguments& call) {
    const auto* const first = call.operands[0].as<double>();
    const bool is_home = first >= homes.front().data() && first <= homes.back().data();
    elsewhere += is_home ? 0 : 1;
    std::this_thread::sleep_for(std::chrono::milliseconds(is_home ? 50 : 1));
  };
  Engine engine({.devices = "emulated:1,memory=1MiB;cpu:1"});
  const auto run = [&](std::array<double, 8>& home, DeviceId device) {
    const Data data = engine.data(home.data(), 8, 1, 8, DType::float64);
    engine.submit(codelet, {{data, Access::update}}, std::span<const std::byte>(),
                  {.device = device});
    engine.wait(300);
  };
  for (std::size_t i = 0; i < 20; ++i) run(homes[i], static_cast<DeviceId>(i % 2));
  EXPECT_EQ(elsewhere.exchange(0), 10);
  for (std::size_t i = 20; i < 40; ++i) run(homes[i], no_device);
  EXPECT_GE(elsewhere, 15);
}

// The streams on which tasks of a name ran, by the trace.
std::multiset<int> lanes_of(const nlohmann::json& trace, const std::string& name) {
  std::multiset<int> lanes;
  for (const nlohmann::json& event : trace["traceEvents"])
    if (event.value("name", "") == name && event.value("ph", "") == "X")
      lanes.insert(event.at("tid").get<int>());
  return lanes;
}

TEST_F(VariantsTest, ThatWaitShareOneStream) {
  Codelet slow = codelet_;
  slow.name = "slow";
  slow.waits_to_queue = true;
  std::vector<std::array<double, 8>> homes(40);
  Engine engine(options_with(DeviceKind::cuda, 0));
  for (std::size_t i = 0; i < homes.size(); ++i) {
    const Data data = engine.data(homes[i].data(), 8, 1, 8, DType::float64);
    engine.submit(i % 4 == 0 ? slow : codelet_, {{data, Access::update}});
  }
  engine.wait(300);
  const auto trace = nlohmann::json::parse(engine.trace_json());
  const std::multiset<int> held = lanes_of(trace, "slow");
  const std::multiset<int> others = lanes_of(trace, "both");
  ASSERT_EQ(held.size(), 10u);
  ASSERT_EQ(others.size(), 30u);
  EXPECT_EQ(std::set<int>(held.begin(), held.end()).size(), 1u);
  EXPECT_GE(std::set<int>(others.begin(), others.end()).size(), 2u);
}

}  // namespace
}  // namespace quadriga
