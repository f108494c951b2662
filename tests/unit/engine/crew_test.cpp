// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/crew_test.cpp: fine tasks of several divided tasks at once, some of which fail.
#include "engine/crew.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <stdexcept>
#include <thread>
#include <vector>

#include <quadriga/error.h>

#include "base/random.h"

namespace quadriga {
namespace {

using Tile = std::vector<double>;  ///< 8 x 8 elements.

/// d = 5 d + s, element by element; the source's elements repeat.
void step(const Arguments& arguments) {
  const View& source = arguments.operands[0];
  const View& target = arguments.operands[1];
  for (std::int64_t j = 0; j < target.cols; ++j)
    for (std::int64_t i = 0; i < target.rows; ++i) {
      const std::int64_t from = i % source.rows + j % source.cols * source.ld;
      double& element = target.as<double>()[i + j * target.ld];
      element = std::fmod(element * 5 + source.as<double>()[from] + 1, 1009);
    }
}

class CrewTest : public testing::Test {
 protected:
  ~CrewTest() override {
    stop_ = true;
    for (std::thread& each : helpers_) each.join();
  }
  void start_helpers(int count) {
    for (int i = 0; i < count; ++i)
      helpers_.emplace_back([this] {
        while (!stop_)
          if (!crew_.help()) std::this_thread::yield();
      });
  }
  /// Random fine tasks on parts of one tile that overlap; in one division of ten a task fails.
  void divide_at_random(std::uint64_t seed, int rounds) {
    constexpr int tasks = 30;
    const Codelet good{.name = "step", .access = {Access::read, Access::update}, .cpu = step};
    const Codelet bad{.name = "bad", .access = good.access, .cpu = [](const Arguments&) {
                        throw std::runtime_error("as asked");
                      }};
    const std::array<Access, 1> access{Access::update};
    Random random(seed);
    const auto below = [&](std::int64_t n) {
      return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(n)));
    };
    Tile divided(64);
    Tile expected(64);
    const std::array<View, 1> whole{View{divided.data(), 8, 8, 8, DType::float64}};
    for (int round = 0; round < rounds; ++round) {
      Subgraph graph("coarse", access, whole);
      const std::int64_t failing = below(10) == 0 ? below(tasks) : tasks;
      for (std::int64_t task = 0; task < tasks; ++task) {
        const auto part = [&] {
          const std::int64_t row = below(8), col = below(8);
          return part_of(whole[0], row, col, 1 + below(8 - row), 1 + below(8 - col));
        };
        std::array<View, 2> operands{part(), part()};
        graph.add(task == failing ? bad : good, operands, {});
        for (View& each : operands)
          each.data = expected.data() + (each.as<double>() - divided.data());
        step({operands, {}, nullptr});
      }
      if (failing < tasks) {
        EXPECT_THROW(crew_.run(graph), std::runtime_error);
        expected = divided;
      } else {
        crew_.run(graph);
        ASSERT_EQ(divided, expected) << "seed " << seed << ", round " << round;
      }
    }
  }

  Graph graph_{16};
  std::atomic<bool> cancelled_{false};
  std::atomic<int> added_{0};
  std::atomic<bool> wanted_{false};
  std::atomic<std::size_t> fine_tasks_{0};
  Crew crew_{graph_,
             {.divides = [] { return true; },
              .added = [this] { ++added_; },
              .is_wanted = [this] { return wanted_.load(); },
              .is_cancelled = [this](const Task*) { return cancelled_.load(); },
              .now = [] { return Nanoseconds{0}; },
              .worked = [this](const FineStretch& stretch) { fine_tasks_ += stretch.tasks; }}};

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> helpers_;
};

TEST_F(CrewTest, SeveralDividedTasksAtOnceGiveWhatTheirTasksInOrderGive) {
  start_helpers(2);
  std::thread other([this] { divide_at_random(1, 200); });
  divide_at_random(2, 200);
  other.join();
  EXPECT_FALSE(crew_.has_tasks());
  EXPECT_EQ(fine_tasks_, 2 * 200 * 30) << "fine tasks that cores told of";
}

TEST_F(CrewTest, AThreadAloneRunsAll) {
  divide_at_random(3, 50);
  EXPECT_FALSE(crew_.has_tasks());
  EXPECT_FALSE(crew_.help());
}

/// One that was searching when they became ready, so that nobody was woken.
TEST_F(CrewTest, WhoHelpsCallsOthersWhileThereIsMore) {
  std::atomic<int> begun = 0;
  std::atomic<bool> goes_on = false;
  const Codelet fine{.name = "fine", .access = {Access::read}, .cpu = [&](const Arguments&) {
                       ++begun;
                       while (!goes_on) std::this_thread::yield();
                     }};
  Tile tile(64);
  const std::array<Access, 1> access{Access::update};
  const std::array<View, 1> whole{View{tile.data(), 8, 8, 8, DType::float64}};
  Subgraph graph("coarse", access, whole);
  for (int i = 0; i < 3; ++i) graph.add(fine, whole, {});
  std::thread owner([&] { crew_.run(graph); });
  while (begun < 1) std::this_thread::yield();
  const int by_owner = added_;
  start_helpers(1);
  while (begun < 2) std::this_thread::yield();
  EXPECT_EQ(added_, by_owner + 1);
  goes_on = true;
  owner.join();
}

TEST_F(CrewTest, OfACancelledTaskNoneRuns) {
  cancelled_ = true;
  std::atomic<int> ran = 0;
  const Codelet fine{
      .name = "fine", .access = {Access::update}, .cpu = [&](const Arguments&) { ++ran; }};
  Tile tile(64);
  const std::array<Access, 1> access{Access::update};
  const std::array<View, 1> whole{View{tile.data(), 8, 8, 8, DType::float64}};
  Subgraph graph("coarse", access, whole);
  for (int i = 0; i < 8; ++i) graph.add(fine, whole, {});
  EXPECT_THROW(crew_.run(graph), Error);
  EXPECT_EQ(ran, 0);
}

}  // namespace
}  // namespace quadriga
