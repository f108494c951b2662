// SPDX-License-Identifier: BSD-3-Clause
// tests/contract/policy/precedence_test.cpp: who wins where a task's device, its owner and a policy
// differ, in the order that quadriga/policy.h states.
#include <gtest/gtest.h>
#include <quadriga/engine.h>
#include <quadriga/policy.h>

#include <set>

namespace quadriga {
namespace {

constexpr DeviceId chosen = 0, owner = 1;
constexpr std::size_t tasks = 24;

/// What the policies of a test do, and what they were asked.
struct Script {
  PolicyTraits traits;
  bool steals = false;
  std::size_t asked = 0;
  std::set<DeviceId> owners;  ///< That place() saw.
};
Script script;

/// Places every task on one device, whoever its owner is.
class Headstrong final : public Policy {
 public:
  PolicyTraits traits() const override { return script.traits; }
  std::size_t place(const PlaceQuestion& question) override {
    ++script.asked;
    script.owners.insert(question.owner);
    for (std::size_t i = 0; i < question.candidates.size(); ++i)
      if (question.candidates[i].device == chosen) return i;
    return none;
  }
  std::size_t victim(const StealQuestion& question) override {
    for (std::size_t i = 0; script.steals && i < question.queued.size(); ++i)
      if (question.queued[i] > 0) return i;
    return none;
  }
  std::size_t choose(std::span<const StealCandidate>) override { return 0; }
};

class Precedence : public testing::Test {
 protected:
  Precedence() {
    static const bool once =
        (register_policy("headstrong", "one device, whoever owns a task",
                         [](const PolicyContext&) { return std::make_unique<Headstrong>(); }),
         true);
    script = Script{};
    script.traits.plans_ahead = once;
  }
  /// Tasks of independent tiles on two devices; how many ran on each, and on the host.
  static std::vector<std::uint64_t> run(const SubmitOptions& where) {
    const Codelet codelet{
        .name = "count",
        .access = {Access::update},
        .cpu = [](const Arguments& given) { *given.operands[0].as<double>() += 1; },
        .cost =
            [](const Arguments&) {
              return Cost{"count", 1, 1};
            }};
    EngineOptions options;
    options.machine = Machine::parse("emulated:2,memory=1MiB");
    options.machine->kernels["count"]["emulated"] = {{1, 1e-4}};
    options.policy = "headstrong";
    options.virtual_clock = true;
    std::vector<double> tiles(tasks, 0);
    Engine engine(options);
    for (double& tile : tiles)
      engine.submit(codelet, {{engine.data(&tile, 1, 1, 1, DType::float64), Access::update}},
                    where);
    engine.wait();
    std::vector<std::uint64_t> ran;
    for (const auto& device : engine.counters().devices) ran.push_back(device.tasks);
    return ran;
  }
};

using Ran = std::vector<std::uint64_t>;

TEST_F(Precedence, ANamedDeviceWinsOverAll) {
  for (const bool follows : {true, false}) {
    script.traits.follows_owners = follows;
    script.steals = true;
    EXPECT_EQ(run({.device = 1, .owner = 0}), (Ran{0, tasks, 0}));
    EXPECT_EQ(script.asked, 0u);
  }
}

TEST_F(Precedence, AnOwnerWinsUnderAPolicyThatFollowsOwners) {
  script.traits.follows_owners = true;
  EXPECT_EQ(run({.owner = owner}), (Ran{0, tasks, 0}));
  EXPECT_EQ(script.asked, 0u);
}

TEST_F(Precedence, OtherPoliciesSeeTheOwnerAndDecide) {
  for (const bool plans : {true, false}) {
    script.traits.plans_ahead = plans;
    script.owners.clear();
    script.asked = 0;
    EXPECT_EQ(run({.owner = owner}), (Ran{tasks, 0, 0}));
    EXPECT_EQ(script.asked, tasks);
    EXPECT_EQ(script.owners, (std::set<DeviceId>{owner}));
  }
}

TEST_F(Precedence, AnIdleDeviceTakesTasksOfAnOwner) {
  script.traits.follows_owners = true;
  script.steals = true;
  const Ran ran = run({.owner = owner});
  EXPECT_GT(ran[chosen], 0u);
  EXPECT_GT(ran[owner], 0u);
  EXPECT_EQ(ran[chosen] + ran[owner], tasks);
}

TEST_F(Precedence, AnOwnerThatCannotRunATaskDoesNotCount) {
  script.traits.follows_owners = true;
  EXPECT_EQ(run({.device = 7, .owner = 9}), (Ran{tasks, 0, 0}));
  EXPECT_EQ(script.asked, tasks);
}

}  // namespace
}  // namespace quadriga
