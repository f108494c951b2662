// SPDX-License-Identifier: BSD-3-Clause
// tests/contract/policy/registry_test.cpp: registering policies, and what is made of their answers.
#include <gtest/gtest.h>
#include <quadriga/engine.h>
#include <quadriga/policy.h>

#include <algorithm>
#include <limits>
#include <set>
#include <stdexcept>

#include "schedule/policy_registry.h"

namespace quadriga {
namespace {

template <class Call>
std::string refusal(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    return error.what();
  }
  return "accepted";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Says what a test told it to say; counts questions.
class Scripted final : public Policy {
 public:
  std::size_t answer = 0;
  double score = 0;
  bool throws = false;
  int asked = 0;
  PolicyTraits traits() const override {
    return {.orders = true, .filters_prefetches = true, .eviction = Eviction::by_score};
  }
  std::size_t place(const PlaceQuestion&) override { return say(); }
  std::size_t victim(const StealQuestion&) override { return say(); }
  std::size_t choose(std::span<const StealCandidate>) override { return say(); }
  std::size_t next(std::span<const ReadyCandidate>) override { return say(); }
  std::size_t prefetch(std::span<const PrefetchCandidate>) override { return say(); }
  double eviction_score(const EvictionCandidate&) override {
    ++asked;
    return score;
  }

 private:
  std::size_t say() {
    ++asked;
    if (throws) throw std::runtime_error("no idea");
    return answer;
  }
};

class Answers : public testing::Test {
 protected:
  Answers() {
    policy_.report_to([this](std::string text) { reports_.push_back(std::move(text)); });
  }
  /// A device with this much to do.
  static PlaceCandidate place(DeviceId device, double queued) {
    PlaceCandidate made;
    made.device = device;
    made.queued_seconds = queued;
    return made;
  }
  const PlaceCandidate places_[3] = {place(0, 3), place(1, 1), place(2, 0)};
  Scripted* const scripted_ = new Scripted;
  CheckedPolicy policy_{"scripted", std::unique_ptr<Policy>(scripted_)};
  std::vector<std::string> reports_;
};

TEST_F(Answers, OutOfRangeAreReportedOnceByNameAndCountAsNone) {
  scripted_->answer = 7;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(policy_.place({places_, no_device, no_device, {}}), 2u) << "the least queued";
    const double queued[] = {1, 2};
    EXPECT_EQ(policy_.victim({0, queued}), 2u);
    const ReadyCandidate ready[2] = {};
    EXPECT_EQ(policy_.next(ready), 0u) << "as planned";
    const PrefetchCandidate fetches[1] = {};
    EXPECT_EQ(policy_.prefetch(fetches), 1u);
  }
  ASSERT_EQ(reports_.size(), 4u);
  EXPECT_EQ(reports_[0],
            "policy 'scripted': place() answered 7; expected less than 3; it counts as no answer");
}

TEST_F(Answers, NoneStarvesNoDeviceWhereNoTimesAreKnown) {
  scripted_->answer = Policy::none;
  const PlaceCandidate places[] = {place(0, 0), place(1, 5), place(2, 0)};
  std::set<std::size_t> chosen;
  for (int i = 0; i < 6; ++i) chosen.insert(policy_.place({places, no_device, no_device, {}}));
  EXPECT_EQ(chosen, (std::set<std::size_t>{0, 2}));
}

TEST_F(Answers, NothingIsAskedWithoutCandidates) {
  EXPECT_EQ(policy_.choose({}), 0u);
  EXPECT_EQ(scripted_->asked, 0);
}

TEST_F(Answers, NoneIsAnAnswer) {
  for (const std::size_t none : {Policy::none, std::size_t{2}}) {
    scripted_->answer = none;
    const StealCandidate tasks[2] = {};
    EXPECT_EQ(policy_.choose(tasks), 2u);
  }
  EXPECT_TRUE(reports_.empty());
}

TEST_F(Answers, WhatIsThrownIsReported) {
  scripted_->throws = true;
  EXPECT_EQ(policy_.place({places_, no_device, no_device, {}}), 2u);
  ASSERT_EQ(reports_.size(), 1u);
  EXPECT_TRUE(contains(reports_[0], "place() threw: no idea")) << reports_[0];
}

TEST_F(Answers, AScoreStaysUntilTheCandidateChanges) {
  const EvictionRule& rule = *policy_.eviction();
  Candidate tile{.tile = 3, .next_use = 10};
  scripted_->score = -1;
  const VictimRank low = rule.rank(tile);
  scripted_->score = 2;
  EXPECT_EQ(rule.rank(tile), low);
  EXPECT_EQ(scripted_->asked, 1);
  tile.next_use = 11;
  EXPECT_GT(rule.rank(tile), low);
  const double not_a_number = std::numeric_limits<double>::quiet_NaN();
  scripted_->score = not_a_number;
  tile.dirty = true;
  EXPECT_GT(rule.rank(tile), low) << "as zero";
  EXPECT_EQ(reports_.size(), 1u);
}

std::unique_ptr<Policy> make_scripted(const PolicyContext&) { return std::make_unique<Scripted>(); }

TEST(Registry, RefusesWhatItCannotTellApart) {
  EXPECT_TRUE(contains(refusal([] { register_policy("", "help", make_scripted); }), "name"));
  EXPECT_TRUE(contains(refusal([] { register_policy("x", "two\nlines", make_scripted); }), "'x'"));
  EXPECT_TRUE(contains(refusal([] { register_policy("x", "help", nullptr); }), "maker"));
  EXPECT_TRUE(contains(refusal([] { register_policy("steal", "help", make_scripted); }),
                       "'steal' already"));
}

TEST(Registry, UnknownNamesSayWhatThereIs) {
  register_policy("another", "for this test", make_scripted);
  const std::string message = refusal([] { Engine({.devices = "cpu:1", .policy = "luck"}); });
  EXPECT_TRUE(contains(message, "'luck'; registered are affinity, another, ")) << message;
  EXPECT_TRUE(contains(message, "steal")) << message;
  const auto all = policies();
  const auto found = std::ranges::find(all, "another", &PolicyInfo::name);
  ASSERT_NE(found, all.end());
  EXPECT_EQ(found->help, "for this test");
}

TEST(Registry, UnknownEvictionsSayWhatThereIs) {
  const std::string message = refusal([] { make_policy("steal", {Machine{}}, "luck"); });
  EXPECT_TRUE(contains(message, "'luck'; known are policy, farthest_use, least_recent, read_first"))
      << message;
  EXPECT_EQ(make_policy("steal", {Machine{}}, "least_recent")->traits().eviction,
            Eviction::least_recent);
  EXPECT_EQ(make_policy("steal", {Machine{}}, "policy")->traits().eviction, Eviction::farthest_use);
}

TEST(Registry, AMakerThatMakesNoneIsNamed) {
  register_policy("nothing", "makes none", [](const PolicyContext&) { return nullptr; });
  EXPECT_TRUE(contains(refusal([] { make_policy("nothing", {Machine{}}); }), "'nothing'"));
}

}  // namespace
}  // namespace quadriga
