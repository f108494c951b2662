// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/ended_is_home_test.cpp: who knows that tasks have ended has what they left.
#include <gtest/gtest.h>
#include <quadriga/engine.h>

#include <functional>
#include <map>

#include "unit/engine/engines.h"

namespace quadriga {
namespace {

class EndedIsHomeTest : public EngineTest {
 protected:
  /// What tells the program that a task which writes some data has ended.
  using Way = std::function<void(const Future&, Data)>;
  std::map<std::string, Way> ways() {
    return {{"the task", [&](const Future& task, Data) { engine().wait(task, patience); }},
            {"its data", [&](const Future&, Data data) { engine().wait(data, patience); }},
            {"on_host",
             [&](const Future&, Data data) { engine().on_host(data, Access::read, patience); }}};
  }
  Codelet& increment() {
    return codelet(Access::update, [](const Arguments& a) { first(a) += 1; });
  }
  std::uint64_t moved() {
    std::uint64_t bytes = 0;
    for (const LinkCounters& link : engine().counters().links) bytes += link.bytes;
    return bytes;
  }
};

INSTANTIATE_TEST_SUITE_P(Engines, EndedIsHomeTest, every_engine(), where_name);

TEST_P(EndedIsHomeTest, WhatTheProgramWritesBetweenTasksIsNotLost) {
  for (const auto& [name, tell] : ways()) {
    SCOPED_TRACE(name);
    const std::size_t index =
        2 * static_cast<std::size_t>(std::distance(ways().begin(), ways().find(name)));
    const Data x = tile(), y = tile();
    for (int step = 1; step < 4; ++step) {
      home_of(index) = step;
      home_of(index + 1) = -1;
      engine().submit(increment(), {{x, Access::update}});
      tell(engine().submit(copying(), {{x, Access::read}, {y, Access::write}}), y);
      EXPECT_EQ(home(index), step + 1);
      EXPECT_EQ(home(index + 1), step + 1);
    }
  }
}

TEST_P(EndedIsHomeTest, AFailureIsToldAndOthersResultsAreHome) {
  const Data x = tile(), y = tile();
  const Future good = engine().submit(increment(), {{x, Access::update}});
  const Future bad =
      engine().submit(codelet("bad", {Access::read, Access::update},
                              [](const Arguments&) { fail(Errc::task_failed, "on purpose"); }),
                      {{x, Access::read}, {y, Access::update}});
  EXPECT_NE(failure_of([&] { engine().wait(bad, patience); }).find("on purpose"),
            std::string::npos);
  EXPECT_EQ(home(0), 1);
  home_of(0) = 7;
  engine().wait(engine().submit(increment(), {{x, Access::update}}), patience);
  EXPECT_EQ(home(0), 8);
  failure_of([&] { wait(); });
  static_cast<void>(good);
}

TEST_P(EndedIsHomeTest, PendingTasksKeepWhatTheyUse) {
  if (is_virtual(GetParam())) GTEST_SKIP() << "no body lasts there";
  const Data x = tile(1), y = tile(2);
  const Future wrote = engine().submit(increment(), {{x, Access::update}});
  const Future reads = engine().submit(gate({Access::read}), {{x, Access::read}});
  const Future writes = engine().submit(gate({Access::update}), {{y, Access::update}});
  engine().wait(wrote, patience);
  EXPECT_EQ(home(0), 2);  // a reader is no reason against a look
  EXPECT_FALSE(engine().done(writes));
  open();
  engine().wait(reads, patience);
  engine().wait(writes, patience);
  home_of(0) = 5;
  engine().wait(engine().submit(increment(), {{x, Access::update}}), patience);
  EXPECT_EQ(home(0), 6);
}

TEST_P(EndedIsHomeTest, ResidentDataStayAndNothingMovesTwice) {
  double value[8] = {};
  const Data x =
      engine().data(value, 8, 1, 8, DType::float64, DataOptions{.keep = false, .resident = true});
  const Data y = tile();
  SubmitOptions there;
  there.device = 0;
  const auto run = [&](Data data) {
    engine().wait(engine().submit(increment(), {{data, Access::update}}, there), patience);
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

}  // namespace
}  // namespace quadriga
