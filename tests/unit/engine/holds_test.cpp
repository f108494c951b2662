// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/holds_test.cpp: the host gets access when nothing is in its way, keeps tasks
// waiting meanwhile, and leaves nothing behind if it gets none.
#include "engine/holds.h"

#include <gtest/gtest.h>
#include <quadriga/engine.h>

#include <array>
#include <latch>
#include <optional>
#include <thread>
#include <utility>

#include "base/log.h"
#include "unit/engine/parts.h"

namespace quadriga {
namespace {

class HoldsTest : public testing::Test {
 protected:
  bool is_held() const { return parts_.graph.has_holds(); }

  IdleParts parts_;
  std::array<double, 16> numbers_{};
  Datum& datum_ = parts_.add(numbers_.data(), 8);
};

TEST_F(HoldsTest, WaitsForWhatIsInItsWayAndNoMore) {
  const TaskRef reader = parts_.submit(datum_, Access::read);
  bool waited = false;
  parts_.executor.meanwhile = [&] {
    waited = true;
    parts_.end(reader);
  };
  const auto reads = parts_.holds.hold({{&datum_, Access::read}}, never);
  EXPECT_FALSE(waited) << "both read";
  parts_.holds.end(*reads);
  const auto writes = parts_.holds.hold({{&datum_, Access::write}}, never);
  EXPECT_TRUE(waited);
  parts_.holds.end(*writes);
}

TEST_F(HoldsTest, TasksSubmittedMeanwhileFollow) {
  const auto hold = parts_.holds.hold({{&datum_, Access::write}}, never);
  const TaskRef behind = parts_.submit(datum_, Access::read);
  EXPECT_NE(behind.task->pending.load(), 0U);
  parts_.holds.end(*hold);
  EXPECT_EQ(behind.task->pending.load(), 0U);
  EXPECT_EQ(parts_.executor.overwrote, std::vector<Datum*>{&datum_});
  parts_.end(behind);
}

TEST_F(HoldsTest, EndsOnce) {
  const auto hold = parts_.holds.hold({{&datum_, Access::update}}, never);
  EXPECT_TRUE(is_held());
  parts_.holds.end(*hold);
  parts_.holds.end(*hold);
  EXPECT_FALSE(is_held());
  EXPECT_EQ(parts_.executor.ended_holds, 1);
}

TEST_F(HoldsTest, IsAwaitedByTasksUntilItEnds) {
  const auto hold = parts_.holds.hold({{&datum_, Access::update}}, never);
  EXPECT_FALSE(Holds::is_awaited(*hold));
  const TaskRef behind = parts_.submit(datum_, Access::read);
  EXPECT_TRUE(Holds::is_awaited(*hold));
  parts_.holds.end(*hold);
  EXPECT_FALSE(Holds::is_awaited(*hold));
  EXPECT_EQ(hold->task, nullptr) << "its slot may be another's";
  parts_.end(behind);
}

TEST(HostAccessTest, MayBeAskedBesideTheEnginesEnd) {
  Codelet reads{.name = "reads", .access = {Access::read}, .cpu = [](const Arguments&) {}};
  constexpr int rounds = 20;
  for (int round = 0; round < rounds; ++round) {
    double home = 0;
    EngineOptions options;
    options.devices = round % 2 == 0 ? "cpu:1" : "emulated:1,memory=64KiB";
    std::optional<Engine> engine(std::in_place, std::move(options));
    const Data data = engine->data(&home, 1, 1, 1, DType::float64);
    const HostAccess access = engine->on_host(data, Access::update);
    engine->submit(reads, {{data, Access::read}});
    ASSERT_TRUE(access.is_awaited());
    std::latch asks(2);
    std::thread other([&] {
      asks.arrive_and_wait();
      while (access.is_awaited()) std::this_thread::yield();
    });
    asks.arrive_and_wait();
    engine.reset();
    other.join();
  }
}

TEST_F(HoldsTest, WhatTheThreadHasIsNoNewAccess) {
  const auto outer = parts_.holds.hold({{&datum_, Access::update}}, never);
  const auto inner = parts_.holds.hold({{&datum_, Access::read}}, never);
  EXPECT_EQ(inner->of, nullptr);
  parts_.holds.end(*outer);
  const auto reads = parts_.holds.hold({{&datum_, Access::read}}, never);
  EXPECT_EQ(code_of([&] {
              parts_.holds.hold({{&datum_, Access::write}}, never);
            }),
            Errc::unavailable);
  parts_.holds.end(*reads);
  EXPECT_FALSE(is_held());
}

TEST_F(HoldsTest, LostContentAndDeadlinesLeaveNoAccess) {
  datum_.poisoned = true;
  EXPECT_THROW(parts_.holds.hold({{&datum_, Access::read}}, never), std::exception);
  EXPECT_FALSE(is_held());
  const auto writes = parts_.holds.hold({{&datum_, Access::write}}, never);
  parts_.holds.end(*writes);
  EXPECT_FALSE(datum_.poisoned.load()) << "overwritten";

  const TaskRef writer = parts_.submit(datum_, Access::write);
  EXPECT_EQ(code_of([&] { parts_.holds.hold({{&datum_, Access::read}}, 0); }), Errc::deadline);
  EXPECT_FALSE(is_held());
  EXPECT_TRUE(parts_.open.all().empty());
  parts_.end(writer);
}

TEST_F(HoldsTest, RegionsHoldWhatOverlapsThem) {
  Datum& other = parts_.add(numbers_.data() + 8, 8);
  EXPECT_EQ(parts_.holds.hold_regions({}, never, false), nullptr);
  const std::array<HeldRegion, 1> first{{{region_of(datum_), Access::write}}};
  const auto hold = parts_.holds.hold_regions(first, never, false);
  ASSERT_NE(hold, nullptr);
  ASSERT_EQ(hold->data.size(), 1U);
  EXPECT_EQ(hold->data[0].datum, &datum_);
  EXPECT_EQ(datum_.holders, 2U) << "it stays registered";
  EXPECT_EQ(other.holders, 1U);
  parts_.holds.end(*hold);
  EXPECT_EQ(datum_.holders, 1U);
}

TEST_F(HoldsTest, AnEngineThatEndsLeavesAccessesToThoseWhoOnlyPass) {
  Datum& other = parts_.add(numbers_.data() + 8, 8);
  const auto stays = parts_.holds.hold({{&datum_, Access::read}}, never, false, true);
  const auto ends = parts_.holds.hold({{&other, Access::read}}, never);
  parts_.holds.end_all();
  EXPECT_EQ(ends->of, nullptr);
  EXPECT_EQ(stays->of, &parts_.holds);
  parts_.holds.end(*stays);
  EXPECT_FALSE(is_held());
}

TEST_F(HoldsTest, AnEngineThatEndsWaitsForNoneWhoseEndFails) {
  Datum& other = parts_.add(numbers_.data() + 8, 8);
  const auto first = parts_.holds.hold({{&datum_, Access::read}}, never);
  const auto second = parts_.holds.hold({{&other, Access::read}}, never);
  set_log_level(LogLevel::off);
  parts_.executor.fails = true;
  ASSERT_NO_THROW(parts_.holds.end_all());
  set_log_level(LogLevel::warning);
  EXPECT_EQ(parts_.executor.ended_holds, 2);
  EXPECT_EQ(first->of, nullptr);
  ASSERT_EQ(second->of, nullptr);
  parts_.holds.await_ended();
}

TEST_F(HoldsTest, IsHomeOnceNoTaskIsToWriteIt) {
  Datum* const data[] = {&datum_};
  EXPECT_TRUE(parts_.holds.are_home(data));
  const TaskRef writer = parts_.submit(datum_, Access::write);
  EXPECT_FALSE(parts_.holds.are_home(data));
  parts_.end(writer);
  EXPECT_TRUE(parts_.holds.are_home(data));
}

}  // namespace
}  // namespace quadriga
