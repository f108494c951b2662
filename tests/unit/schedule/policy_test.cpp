// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/schedule/policy_test.cpp: where the policy affinity places tasks of unknown cost, what
// idle devices take of them, and how much of it is trying.
#include "schedule/policy_registry.h"

#include <gtest/gtest.h>
#include <quadriga/machine.h>

#include <algorithm>
#include <vector>

#include "schedule/kernel_history.h"

namespace quadriga {
namespace {

constexpr DeviceId quick = 0, slow = 1;

/// Two devices of different kinds that stand still: tasks are placed, and end when a test says so.
class TwoKinds {
 public:
  /// Where a task is placed that nothing but experience tells from others.
  DeviceId place(DeviceId owner = no_device) {
    PlaceCandidate candidates[] = {candidate(quick), candidate(slow)};
    const DeviceId chosen = candidates[policy_->place({candidates, owner, no_device, {}})].device;
    class_.chosen();
    class_.put(kind(chosen));
    return chosen;
  }
  void end(DeviceId device, double seconds) {
    class_.taken(kind(device));
    class_.measured(kind(device), seconds);
  }
  /// Places tasks that end at once; how many went to the slow device.
  int run(int tasks, double slow_seconds = 10) {
    int elsewhere = 0;
    for (int i = 0; i < tasks; ++i) {
      const DeviceId device = place();
      elsewhere += device == slow;
      end(device, device == slow ? slow_seconds : 1);
    }
    return elsewhere;
  }
  /// Whether the slow device, which is idle, takes one of the other's tasks.
  bool steals(double gain_seconds) {
    const StealCandidate candidate{.gain_seconds = gain_seconds, .experience = experience(slow)};
    return policy_->choose(std::span(&candidate, 1)) == 0;
  }
  void steal() {
    class_.taken(kind(quick));
    class_.put(kind(slow));
  }

  bool learns = true;
  double queued_seconds = 0;  ///< On the quick device.

 private:
  static DeviceKind kind(DeviceId device) {
    return device == quick ? DeviceKind::cuda : DeviceKind::cpu;
  }
  Experience experience(DeviceId device) const {
    Experience experience = class_.experience(kind(device));
    experience.learns = learns;
    return experience;
  }
  PlaceCandidate candidate(DeviceId device) const {
    return {.device = device,
            .kernel_seconds = class_.seconds(kind(device)),
            .queued_seconds = device == quick ? queued_seconds : 0,
            .experience = experience(device)};
  }

  Machine machine_;
  std::unique_ptr<CheckedPolicy> policy_ = make_policy("affinity", {machine_});
  TaskHistory class_;
};

TEST(Affinity, TriesNothingWhileTasksAreFew) { EXPECT_EQ(TwoKinds().run(64), 0); }

TEST(Affinity, TriesAKindTwice) {
  TwoKinds machine;
  EXPECT_EQ(machine.run(65), 1);
  EXPECT_EQ(machine.run(63), 0);
  EXPECT_EQ(machine.run(1), 1);
  EXPECT_EQ(machine.run(10000), 0);
}

TEST(Affinity, StaysWhereTheTryWasQuick) {
  TwoKinds machine;
  machine.run(64);
  EXPECT_EQ(machine.run(100, 0.1), 100);
}

TEST(Affinity, TriesEarlierWhereOthersGoOnMeanwhile) {
  TwoKinds machine;
  for (int i = 0; i < 16; ++i) ASSERT_EQ(machine.place(), quick);
  EXPECT_EQ(machine.place(), slow);
}

TEST(Affinity, TriesOneTaskAtATime) {
  TwoKinds machine;
  for (int i = 0; i < 16; ++i) machine.place();
  ASSERT_EQ(machine.place(), slow);
  for (int i = 0; i < 200; ++i) ASSERT_EQ(machine.place(), quick);
  machine.end(slow, 10);
  EXPECT_EQ(machine.place(), slow);
}

TEST(Affinity, GuessesForOneTaskAtATime) {
  TwoKinds machine;
  machine.run(5);
  machine.queued_seconds = 3;
  EXPECT_EQ(machine.place(), slow);
  EXPECT_EQ(machine.place(), quick);
  machine.end(slow, 2);
  EXPECT_EQ(machine.place(), slow);
  EXPECT_EQ(machine.place(), slow);
}

TEST(Affinity, TriesNeitherWhatACostSaysNorWhatHasAnOwner) {
  TwoKinds machine;
  machine.learns = false;
  EXPECT_EQ(machine.run(1000), 0);
  machine.learns = true;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(machine.place(quick), quick);
    machine.end(quick, 1);
  }
}

TEST(Affinity, AnIdleDeviceTakesWhatItKnows) {
  TwoKinds machine;
  machine.run(65);
  EXPECT_TRUE(machine.steals(1));
  EXPECT_FALSE(machine.steals(-1));
}

TEST(Affinity, AnIdleDeviceTriesOneOfMany) {
  TwoKinds machine;
  for (int i = 0; i < 15; ++i) machine.place();
  EXPECT_FALSE(machine.steals(1));
  machine.place();
  EXPECT_TRUE(machine.steals(-1));
  machine.steal();
  EXPECT_FALSE(machine.steals(1));
}

/// Seconds until all of 2000 tasks have ended on a quick device and one of half its speed, where
/// each goes to the one that ends it earliest by what was measured before; `wrong` says of which
/// tasks 500 times as much was measured.
template <class Wrong>
double run_by_measured_times(Wrong&& wrong) {
  constexpr double seconds[] = {1, 2};
  const Machine machine;
  const auto policy = make_policy("affinity", {machine});
  const DeviceKind kinds[] = {DeviceKind::cuda, DeviceKind::cpu};
  TaskHistory tasks;
  double free_at[] = {0, 0};
  for (int i = 0; i < 2000; ++i) {
    const double now = std::min(free_at[0], free_at[1]);
    PlaceCandidate candidates[2];
    for (const DeviceId at : {quick, slow}) {
      candidates[at] = {.device = at,
                        .kernel_seconds = tasks.seconds(kinds[at]),
                        .queued_seconds = free_at[at] - now,
                        .experience = tasks.experience(kinds[at])};
      candidates[at].experience.learns = true;
    }
    const DeviceId chosen =
        candidates[policy->place({candidates, no_device, no_device, {}})].device;
    tasks.chosen();
    tasks.put(kinds[chosen]);
    free_at[chosen] += seconds[chosen];
    tasks.taken(kinds[chosen]);
    tasks.measured(kinds[chosen], seconds[chosen] * (wrong(i) ? 500 : 1));
  }
  return std::max(free_at[0], free_at[1]);
}

TEST(Affinity, OneWrongTimeInAHundredCostsLittle) {
  const double right = run_by_measured_times([](int) { return false; });
  for (int offset = 0; offset < 100; ++offset)
    EXPECT_LE(run_by_measured_times([&](int i) { return i % 100 == offset; }), 1.05 * right)
        << offset;
}

TEST(Steal, TakesTheOldestThatEndsEarlierWithTheThief) {
  const Machine machine;
  const auto policy = make_policy("steal", {machine});
  EXPECT_TRUE(policy->traits().steals_from_host);
  std::vector<StealCandidate> candidates(3);
  for (int i = 0; i < 3; ++i) candidates[static_cast<std::size_t>(i)].gain_seconds = 2 * i - 1;
  EXPECT_EQ(policy->choose(candidates), 1u);
  EXPECT_GE(policy->choose({candidates.data(), 1}), 1u) << "none of them";
}

/// The driver doesn't ask then.
TEST(Policies, ThatFollowOwnersChooseThem) {
  for (const char* const name : {"affinity", "steal"}) {
    const Machine machine;
    const auto policy = make_policy(name, {machine});
    EXPECT_EQ(policy->traits().follows_owners, std::string_view(name) == "affinity");
    if (!policy->traits().follows_owners) continue;
    std::vector<PlaceCandidate> candidates(3);
    for (DeviceId device = 0; device < 3; ++device) {
      candidates[device].device = device;
      candidates[device].queued_seconds = candidates[device].fetch_seconds = 3 - device;
      candidates[device].bytes_here = device;
    }
    for (DeviceId owner = 0; owner < 3; ++owner)
      EXPECT_EQ(policy->place({candidates, owner, no_device, {}}), owner);
  }
}

}  // namespace
}  // namespace quadriga
