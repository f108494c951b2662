// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/ended_is_home_test.cpp: who knows that tasks have ended has what they left.
#include <gtest/gtest.h>
#include <quadriga/engine.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "unit/engine/engines.h"

namespace quadriga {
namespace {

class EndedIsHomeTest : public EngineTest {
 protected:
  /// What tells the program that a task which writes some data has ended.
  using Way = std::function<void(const Future&, Data)>;
  std::vector<std::pair<std::string, Way>> ways() {
    return {{"the task", [&](const Future& task, Data) { engine().wait(task, patience); }},
            {"its data", [&](const Future&, Data data) { engine().wait(data, patience); }},
            {"on_host",
             [&](const Future&, Data data) { engine().on_host(data, Access::read, patience); }}};
  }
  Codelet& increment() {
    return codelet(Access::update, [](const Arguments& a) { first(a) += 1; });
  }
  /// On the first device, which has a memory of its own if any has.
  Future submit(const Codelet& codelet, std::initializer_list<Operand> operands) {
    SubmitOptions options;
    options.device = 0;
    return engine().submit(codelet, operands, options);
  }
  std::uint64_t moved() {
    std::uint64_t bytes = 0;
    for (const LinkCounters& link : engine().counters().links) bytes += link.bytes;
    return bytes;
  }
};

INSTANTIATE_TEST_SUITE_P(Engines, EndedIsHomeTest, every_engine(), where_name);

TEST_P(EndedIsHomeTest, WhatTheProgramWritesBetweenTasksIsNotLost) {
  std::size_t index = 0;
  for (const auto& [name, tell] : ways()) {
    SCOPED_TRACE(name);
    const Data x = tile();
    const Data y = tile();
    for (int step = 1; step < 4; ++step) {
      home_of(index) = 10 * step;
      home_of(index + 1) = -1;
      submit(increment(), {{x, Access::update}});
      tell(submit(copying(), {{x, Access::read}, {y, Access::write}}), y);
      EXPECT_EQ(home(index), 10 * step + 1);
      EXPECT_EQ(home(index + 1), 10 * step + 1);
    }
    index += 2;
  }
}

TEST_P(EndedIsHomeTest, AFailureIsToldAndResultsOfOthersAreHome) {
  const Data x = tile();
  const Data y = tile();
  submit(increment(), {{x, Access::update}});
  Codelet& bad = codelet("bad", {Access::read, Access::update},
                         [](const Arguments&) { fail(Errc::task_failed, "on purpose"); });
  const Future failed = submit(bad, {{x, Access::read}, {y, Access::update}});
  const std::string told = failure_of([&] { engine().wait(failed, patience); });
  EXPECT_NE(told.find("on purpose"), std::string::npos) << told;
  EXPECT_EQ(home(0), 1);
  home_of(0) = 7;
  engine().wait(submit(increment(), {{x, Access::update}}), patience);
  EXPECT_EQ(home(0), 8);
  failure_of([&] { wait(); });
}

TEST_P(EndedIsHomeTest, PendingTasksKeepWhatTheyUse) {
  if (is_virtual(GetParam())) GTEST_SKIP() << "no body lasts there";
  const Data x = tile(1);
  const Data y = tile(2);
  const Future wrote = submit(increment(), {{x, Access::update}});
  const Future reads = submit(gate({Access::read}), {{x, Access::read}});
  const Future writes = submit(gate({Access::update}), {{y, Access::update}});
  engine().wait(wrote, patience);
  EXPECT_EQ(home(0), 2);  // a reader is no reason against a look
  EXPECT_FALSE(engine().done(writes));
  open();
  engine().wait(reads, patience);
  engine().wait(writes, patience);
  home_of(0) = 5;
  engine().wait(submit(increment(), {{x, Access::update}}), patience);
  EXPECT_EQ(home(0), 6);
}

TEST_P(EndedIsHomeTest, ResidentDataStayAndNothingMovesTwice) {
  double value[8] = {};
  const Data x = engine().data(value, 8, 1, 8, DType::float64, {.keep = false, .resident = true});
  const Data y = tile();
  const auto run = [&](Data data) {
    engine().wait(submit(increment(), {{data, Access::update}}), patience);
  };
  run(x);
  const std::uint64_t before = moved();
  run(x);
  EXPECT_EQ(moved(), before);
  run(y);
  const std::uint64_t both = moved();
  wait();
  EXPECT_EQ(home(0), 1);
  EXPECT_EQ(value[0], 2);
  // Only what stayed there came home by the last wait.
  EXPECT_EQ(moved() - both, GetParam() == Where::host ? 0u : sizeof value);
}

/// A wait that has brought data home gives them to the program, unless a task that was submitted
/// meanwhile has written them again.
TEST_P(EndedIsHomeTest, AWaitOfAnotherThreadTakesNothingBack) {
  constexpr int steps = 500;
  const Data x = tile();
  std::atomic<bool> is_over{false};
  std::thread other([&] {
    while (!is_over.load()) engine().wait(patience);
  });
  for (int step = 0; step < steps; ++step)
    engine().wait(submit(increment(), {{x, Access::update}}), patience);
  is_over.store(true);
  other.join();
  EXPECT_EQ(home(0), steps);
}

}  // namespace
}  // namespace quadriga
