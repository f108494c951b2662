// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/pulls_test.cpp: tasks that wait for devices to pull them: who is asked before
// one is placed, and what the policy is told.
#include <gtest/gtest.h>
#include <quadriga/engine.h>
#include <quadriga/policy.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "device/factory.h"
#include "engine/engine_access.h"
#include "schedule/pace.h"

namespace quadriga {
namespace {

constexpr double patience = 1e6;  ///< Of the virtual clock.

/// What the policy "told" was told and asked, and which devices get what waits.
struct Told {
  std::vector<DeviceId> pulling = {};  ///< Each gets all that waits when it is asked.
  std::vector<std::uint64_t> waiting = {};
  std::vector<std::pair<std::uint64_t, DeviceId>> placed = {};
  std::size_t places = 0;  ///< Calls of place().
};
Told told;

/// Forgets a task as soon as it has answered it.
class Telling final : public Policy {
 public:
  PolicyTraits traits() const override { return {.pulls = true}; }
  void waiting(const TaskNews& news) override { told.waiting.push_back(news.task.id); }
  void placed(std::uint64_t id, DeviceId device) override {
    told.placed.emplace_back(id, device);
    std::erase(told.waiting, id);
  }
  void pull(const PullQuestion& question, std::vector<std::uint64_t>& tasks) override {
    if (std::ranges::count(told.pulling, question.device) > 0) std::swap(tasks, told.waiting);
  }
  std::size_t place(const PlaceQuestion& question) override {
    ++told.places;
    return question.candidates.size() - 1;
  }
};

class PullsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    register_policy("told", "tells what it was told",
                    [](const PolicyContext&) { return std::make_unique<Telling>(); });
  }
  void SetUp() override {
    told = {};
    plus_.name = "plus";
    plus_.access = {Access::update};
    plus_.cost = [](const Arguments&) { return Cost{"unit", 1, 1}; };
    plus_.cpu = [](const Arguments& call) { call.operands[0].as<double>()[0] += 1; };
    set_log_sink([this](LogLevel, std::string_view message) { said_ += message; });
  }
  void TearDown() override { set_log_sink({}); }

  /// Emulated devices on which a task takes so many seconds.
  static WrappedOptions options(const std::string& policy, const std::vector<double>& seconds) {
    WrappedOptions options;
    options.machine = Machine::parse("emulated:" + std::to_string(seconds.size()) + ",memory=1MiB");
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      std::string& rates = options.machine->devices[i].rates;
      rates = "as " + std::to_string(i);
      options.machine->kernels["unit"][rates][1] = seconds[i];
    }
    options.virtual_clock = true;
    options.policy = policy;
    return options;
  }
  /// How many of so many tasks, one a tile, each device runs.
  std::vector<std::uint64_t> run(const WrappedOptions& options, std::size_t tasks) {
    std::vector<double> values(tasks, 0);
    Engine engine(EngineAccess::make(options));
    for (double& value : values)
      engine.submit(plus_, {{engine.data(&value, 1, 1, 1, DType::float64), Access::update}});
    engine.wait(patience);
    for (const double value : values) EXPECT_EQ(value, 1);
    std::vector<std::uint64_t> ran;
    for (const DeviceCounters& device : engine.counters().devices) ran.push_back(device.tasks);
    return ran;
  }

  Codelet plus_;
  std::string said_;
};

using Ran = std::vector<std::uint64_t>;

TEST_F(PullsTest, NoTaskIsPlacedBeforeEachDeviceWasAsked) {
  told.pulling = {1};
  const Ran ran = run(options("told", {1, 1}), 2);
  EXPECT_EQ(ran[0], 0u);
  EXPECT_EQ(ran[1], 2u);
  EXPECT_EQ(told.places, 0u);
}

TEST_F(PullsTest, ASlowDeviceThatIsAskedFirstTakesNothingFromAQuickOne) {
  const Ran ran = run(options("data-first", {100, 1}), 4);
  EXPECT_EQ(ran[0], 0u);
  EXPECT_EQ(ran[1], 4u);
  EXPECT_EQ(said_, "");
}

TEST_F(PullsTest, ThePolicyIsToldWhereATaskWasPlacedThatNobodyPulled) {
  const Ran ran = run(options("told", {1, 1}), 3);
  EXPECT_EQ(ran[1], 3u);
  EXPECT_EQ(told.places, 3u);
  const std::vector<std::pair<std::uint64_t, DeviceId>> all{{1, 1}, {2, 1}, {3, 1}};
  EXPECT_EQ(told.placed, all);
  EXPECT_TRUE(told.waiting.empty());
}

TEST_F(PullsTest, ATaskThatItsDeviceCannotRunIsAnnouncedAgain) {
  WrappedOptions mixed = options("told", {1, 1});
  mixed.machine = Machine::parse("cpu:1;emulated:2,memory=1MiB");
  mixed.machine->kernels["unit"]["gpu"][1] = 1;
  for (Device& device : mixed.machine->devices) {
    if (device.kind == DeviceKind::emulated) device.kind = DeviceKind::cuda;
    device.rates = "gpu";
  }
  plus_.cuda = std::exchange(plus_.cpu, nullptr);
  told.pulling = {0, 1};
  const Ran ran = run(mixed, 3);
  EXPECT_EQ(ran[1], 3u);
  EXPECT_EQ(told.places, 0u);
  EXPECT_NE(said_.find("no waiting task that the device can run"), std::string::npos) << said_;
}

TEST_F(PullsTest, OnceTheQuickDeviceIsLostTheOthersShareWhatWaits) {
  WrappedOptions losing = options("data-first", {1, 100, 100});
  losing.wrap_backend = [](std::unique_ptr<Backend> backend) {
    return make_faulty_backend(std::move(backend), {.losses = {{0, 1}}});
  };
  const Ran ran = run(losing, 40);
  EXPECT_GE(ran[1], 10u);
  EXPECT_GE(ran[2], 10u);
}

/// How many tasks run before one of this priority, which is ready once the host has seen the end of
/// the first of them. The device has pulled the others by then, as they read one tile.
std::ptrdiff_t ran_before(const WrappedOptions& options, int priority) {
  constexpr std::size_t others = 60;
  std::vector<double> values(others, 0);
  double common = 0;
  double seen = 0;
  std::vector<const void*> order;
  Codelet runs;
  runs.name = "runs";
  runs.access = {Access::read, Access::write};
  runs.cost = [](const Arguments&) { return Cost{"unit", 1, 1}; };
  runs.cpu = [&](const Arguments& call) { order.push_back(call.operands[0].data); };
  Codelet sees;
  sees.name = "sees";
  sees.access = {Access::read, Access::write};
  sees.cost = [](const Arguments&) { return Cost{"seen", 1, 1}; };
  sees.host_only = true;
  sees.cpu = [](const Arguments&) {};
  Codelet follows = runs;
  follows.name = "follows";
  follows.access = {Access::update};
  follows.cpu = [&](const Arguments&) { order.push_back(nullptr); };
  Engine engine(EngineAccess::make(options));
  std::vector<Data> data;
  for (double& value : values) data.push_back(engine.data(&value, 1, 1, 1, DType::float64));
  const Data read = engine.data(&common, 1, 1, 1, DType::float64);
  const Data signal = engine.data(&seen, 1, 1, 1, DType::float64);
  for (const Data& each : data) engine.submit(runs, {{read, Access::read}, {each, Access::write}});
  engine.submit(sees, {{data.front(), Access::read}, {signal, Access::write}});
  engine.submit(follows, {{signal, Access::update}}, {.priority = priority});
  engine.wait(patience);
  EXPECT_EQ(order.size(), others + 1);
  return std::ranges::find(order, nullptr) - order.begin();
}

TEST_F(PullsTest, TheMostUrgentPassesWhatItsDevicePulledBefore) {
  WrappedOptions two = options("data-first", {1, 1});
  two.machine->kernels["seen"][""][1] = 1e-3;
  // It is pulled once its device has little to issue; each of the two has as much left then.
  constexpr auto passed = static_cast<std::ptrdiff_t>(pace::pulled_ahead);
  EXPECT_LT(ran_before(two, 1), ran_before(two, 0) - passed);
}

}  // namespace
}  // namespace quadriga
