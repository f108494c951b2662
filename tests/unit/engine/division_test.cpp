// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/division_test.cpp: divided tasks do what undivided ones do, wherever they run.
#include <quadriga/division.h>
#include <quadriga/engine.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/config.h"
#include "base/random.h"
#include "unit/engine/engines.h"

namespace quadriga {
namespace {

/// One fine task of the random divisions below: elements of both tiles.
struct Step {
  int from, to, count;
};

class DivisionTest : public EngineTest {
 protected:
  void SetUp() override {
    // More cores than tasks that are ready at once: all that can divide do.
    make([](WrappedOptions& options) {
      if (GetParam() == Where::host) options.devices = "cpu:4";
    });
  }
  ~DivisionTest() override { Config::global().unset("divide"); }

  static bool divides() { return GetParam() == Where::host; }

  /// A coarse task on one tile that becomes eight tasks on an element each.
  Codelet& by_elements(Codelet& fine, std::atomic<int>& whole) {
    Codelet& made = codelet(Access::update, [&](const Arguments&) { ++whole; });
    set_division(made, [&fine](const Arguments& a, Division& division) {
      for (int i = 0; i < 8; ++i) division.add(fine, {part_of(a.operands[0], i, 0, 1, 1)});
    });
    return made;
  }
};

TEST_P(DivisionTest, ATaskIsDividedOnIdleCoresAndRunsWholeElsewhere) {
  std::atomic<int> whole = 0;
  Codelet& fine = codelet(Access::update, [](const Arguments& a) { first(a) += 1; });
  const Data x = tile(5);
  engine().submit(by_elements(fine, whole), {{x, Access::update}});
  wait();
  EXPECT_EQ(whole, divides() ? 0 : 1);
  EXPECT_EQ(home(0), divides() ? 6 : 5);
}

TEST_P(DivisionTest, ByTheSettingNoTaskIsDivided) {
  Config::global().set("divide", "off");
  SetUp();
  std::atomic<int> whole = 0;
  Codelet& fine = codelet(Access::update, [](const Arguments& a) { first(a) += 1; });
  const Data x = tile(5);
  engine().submit(by_elements(fine, whole), {{x, Access::update}});
  wait();
  EXPECT_EQ(whole, 1);
  EXPECT_EQ(home(0), 5);
}

TEST_P(DivisionTest, CoresThatRunFineTasksKeepNoSlots) {
  if (!divides()) GTEST_SKIP() << "only the host's cores divide";
  make([](WrappedOptions& options) {
    options.devices = "cpu:2";
    options.window = 2;
  });
  std::atomic<int> begun = 0;
  std::atomic<int> whole = 0;
  std::atomic<bool> runs = false, open = false, late = false;
  const auto await = [&](const auto& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(240);
    while (!condition() && !late) late = std::chrono::steady_clock::now() > end;
  };
  Codelet& fine = codelet(Access::update, [&](const Arguments&) {
    ++begun;
    await([&] { return open.load(); });
  });
  // It ends when the other core has begun to divide, and its core runs a fine task then.
  Codelet& before = codelet(Access::update, [&](const Arguments&) {
    runs = true;
    await([&] { return begun > 0; });
  });
  const Data x = tile(), y = tile();
  engine().submit(before, {{x, Access::update}});
  await([&] { return runs.load(); });
  engine().submit(by_elements(fine, whole), {{y, Access::update}});
  await([&] { return begun > 1; });
  engine().submit(codelet(Access::update, [](const Arguments&) {}), {{x, Access::update}});
  EXPECT_FALSE(late) << "the slot of the task that had ended was free";
  open = true;
  wait();
}

/// The owner goes on with fine tasks, and the core that helped it does not.
TEST_P(DivisionTest, ACoreThatHelpsRunsCoarseTasksFirst) {
  if (!divides()) GTEST_SKIP() << "only the host's cores divide";
  make([](WrappedOptions& options) { options.devices = "cpu:2"; });
  std::atomic<int> begun = 0;
  std::atomic<int> whole = 0;
  std::atomic<bool> submitted = false, coarse_ran = false, late = false;
  const auto await = [&](const auto& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(240);
    while (!condition() && !late) late = std::chrono::steady_clock::now() > end;
  };
  Codelet& fine = codelet(Access::update, [&](const Arguments&) {
    if (++begun <= 2)
      await([&] { return submitted.load(); });
    else
      await([&] { return coarse_ran.load(); });
  });
  const Data x = tile(), y = tile();
  engine().submit(by_elements(fine, whole), {{x, Access::update}});
  await([&] { return begun == 2; });
  engine().submit(codelet(Access::update, [&](const Arguments&) { coarse_ran = true; }),
                  {{y, Access::update}});
  submitted = true;
  wait();
  EXPECT_EQ(begun, 8);
  EXPECT_FALSE(late) << "both cores ran fine tasks while a coarse one waited";
}

TEST_P(DivisionTest, SeveralCoresRunFineTasksOfOneTask) {
  if (!divides()) GTEST_SKIP() << "only the host's cores divide";
  std::atomic<int> begun = 0;
  std::atomic<int> whole = 0;
  std::atomic<bool> met = true;
  Codelet& fine = codelet(Access::update, [&](const Arguments&) {
    ++begun;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(240);
    while (begun < 2)
      if (std::chrono::steady_clock::now() > end) {
        met = false;
        break;
      }
  });
  const Data x = tile();
  engine().submit(by_elements(fine, whole), {{x, Access::update}});
  wait();
  EXPECT_TRUE(met) << "no second core took a fine task while the first ran";
  EXPECT_EQ(begun, 8);
}

/// Chains of tasks that are lists of steps on elements of two tiles, some of which overlap. Each
/// step depends on the order of those before it on the same elements.
TEST_P(DivisionTest, RandomDivisionsGiveTheResultsOfTheUndividedTasks) {
  constexpr int steps = 10;
  struct Steps {
    Step list[steps];
  };
  const auto step = [](double* to, const double* from, int count) {
    for (int i = 0; i < count; ++i) to[i] = std::fmod(to[i] * 5 + from[i] + i + 1, 1009);
  };
  std::atomic<int> divided = 0;
  const std::vector<Access> two{Access::read, Access::update};
  Codelet& fine = codelet("fine", two, [&](const Arguments& a) {
    step(a.operands[1].as<double>(), a.operands[0].as<double>(),
         static_cast<int>(a.operands[1].rows));
  });
  Codelet& coarse = codelet("coarse", two, [&](const Arguments& a) {
    for (const Step& each : a.param<Steps>().list)
      step(a.operands[1].as<double>() + each.to, a.operands[0].as<double>() + each.from,
           each.count);
  });
  set_division(coarse, [&](const Arguments& a, Division& division) {
    ++divided;
    for (const Step& each : a.param<Steps>().list)
      division.add(fine, {part_of(a.operands[0], each.from, 0, each.count, 1),
                          part_of(a.operands[1], each.to, 0, each.count, 1)});
  });
  Random random(7);
  const auto below = [&](std::uint64_t n) { return static_cast<int>(random.below(n)); };
  constexpr int tiles = 4;
  std::vector<Data> data;
  std::vector<std::vector<double>> expected;
  for (int i = 0; i < tiles; ++i) {
    data.push_back(tile(i));
    expected.emplace_back(8, i);
  }
  for (int task = 0; task < 300; ++task) {
    const int from = below(tiles);
    const int to = (from + 1 + below(tiles - 1)) % tiles;
    Steps list{};
    for (Step& each : list.list) {
      each = {below(8), below(8), 0};
      each.count = 1 + below(static_cast<std::uint64_t>(8 - std::max(each.from, each.to)));
      step(expected[to].data() + each.to, expected[from].data() + each.from, each.count);
    }
    engine().submit(coarse, {{data[from], Access::read}, {data[to], Access::update}}, list);
  }
  wait();
  for (std::size_t i = 0; i < tiles; ++i)
    for (std::size_t k = 0; k < 8; ++k)
      EXPECT_EQ((&home_of(i))[k], expected[i][k]) << "tile " << i << ", element " << k;
  EXPECT_EQ(divided > 0, divides());
}

TEST_P(DivisionTest, AFineTaskDividesInTurn) {
  std::atomic<int> whole = 0;
  Codelet& finest = codelet(Access::update, [](const Arguments& a) { first(a) += 1; });
  Codelet& fine = codelet(Access::update, [&](const Arguments& a) {
    ++whole;
    for (int i = 0; i < 2; ++i) a.operands[0].as<double>()[i] += 1;
  });
  set_division(fine, [&](const Arguments& a, Division& division) {
    for (int i = 0; i < 2; ++i) division.add(finest, {part_of(a.operands[0], i, 0, 1, 1)});
  });
  Codelet& coarse = codelet(Access::update, [&](const Arguments& a) {
    for (int i = 0; i < 8; ++i) a.operands[0].as<double>()[i] += 1;
  });
  set_division(coarse, [&](const Arguments& a, Division& division) {
    for (int i = 0; i < 4; ++i) division.add(fine, {part_of(a.operands[0], 2 * i, 0, 2, 1)});
  });
  const Data x = tile(1);
  for (int i = 0; i < 50; ++i) engine().submit(coarse, {{x, Access::update}});
  wait();
  for (std::size_t k = 0; k < 8; ++k) EXPECT_EQ((&home_of(0))[k], 51);
  EXPECT_EQ(whole, 0);
}

TEST_P(DivisionTest, TheFirstExceptionFailsTheTaskAndTheRestDoesntRun) {
  std::atomic<int> ran = 0;
  Codelet& fine = codelet(Access::update, [&](const Arguments&) {
    if (++ran == 3) throw std::runtime_error("the third one");
  });
  // All on the same element: one follows the other.
  Codelet& coarse = codelet("coarse", {Access::update},
                            [](const Arguments&) { throw std::runtime_error("the third one"); });
  set_division(coarse, [&](const Arguments& a, Division& division) {
    for (int i = 0; i < 8; ++i) division.add(fine, {part_of(a.operands[0], 0, 0, 1, 1)});
  });
  const Data x = tile(1);
  const Data y = tile(2);
  engine().submit(coarse, {{x, Access::update}});
  engine().submit(copying(), {{x, Access::read}, {y, Access::write}});
  EXPECT_NE(failure_of([&] { wait(); }).find("the third one"), std::string::npos);
  EXPECT_EQ(ran, divides() ? 3 : 0);
  EXPECT_EQ(home(1), 2) << "the successor ran";
}

TEST_P(DivisionTest, ADivisionThatIsRefusedFailsTheTaskAndSaysWhy) {
  if (!divides()) GTEST_SKIP() << "only the host's cores divide";
  Codelet& fine = codelet(Access::update, [](const Arguments&) {});
  Codelet& coarse = codelet("coarse", {Access::read}, [](const Arguments&) {});
  set_division(
      coarse, [&](const Arguments& a, Division& division) { division.add(fine, {a.operands[0]}); });
  const Data x = tile(1);
  engine().submit(coarse, {{x, Access::read}});
  EXPECT_NE(failure_of([&] { wait(); }).find("division of 'coarse': fine task 0 ('update') writes"),
            std::string::npos);
}

TEST_P(DivisionTest, FineTasksOfACancelledTaskDontRun) {
  if (!divides()) GTEST_SKIP() << "only the host's cores divide";
  TaskGroup group;
  std::atomic<int> ran = 0;
  Codelet& fine = codelet(Access::update, [&](const Arguments&) {
    if (++ran == 2) group.cancelled = true;
  });
  Codelet& coarse = codelet(Access::update, [](const Arguments&) {});
  set_division(coarse, [&](const Arguments& a, Division& division) {
    for (int i = 0; i < 8; ++i) division.add(fine, {part_of(a.operands[0], 0, 0, 1, 1)});
  });
  const std::vector<Operand> operands{{tile(1), Access::update}};
  const Future task = EngineAccess::submit(engine(), coarse, operands, {}, {}, &group);
  EXPECT_NE(failure_of([&] { engine().wait(task, patience); }).find("cancelled"),
            std::string::npos);
  EXPECT_EQ(ran, 2);
  EngineAccess::cancel(engine(), group);
}

TEST_P(DivisionTest, WhatCantDivideIsRefused) {
  Codelet none{.name = "gpu only", .access = {Access::read}};
  const auto divide = [](const Arguments&, Division&) {};
  EXPECT_NE(failure_of([&] { set_division(none, divide); }).find("codelet 'gpu only' needs a cpu"),
            std::string::npos);
}

TEST_P(DivisionTest, TracesTellWhichCoresRanHowManyFineTasks) {
  make([](WrappedOptions& options) {
    if (GetParam() == Where::host) options.devices = "cpu:4";
    options.trace = true;
  });
  std::atomic<int> whole = 0;
  std::atomic<int> begun = 0;
  // Two meet, so that at least two cores are in the trace.
  Codelet& fine = codelet(Access::update, [&](const Arguments&) {
    ++begun;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(240);
    while (begun < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  });
  const Data x = tile();
  engine().submit(by_elements(fine, whole), {{x, Access::update}});
  wait();
  const nlohmann::json trace = nlohmann::json::parse(engine().trace_json());
  int fine_tasks = 0;
  std::set<int> cores;
  int owners = 0;
  for (const nlohmann::json& event : trace["traceEvents"]) {
    if (event["name"] != "fine tasks of update") continue;
    fine_tasks += event["args"]["fine"].get<int>();
    cores.insert(event["tid"].get<int>());
    owners += event["cat"] == "fine" ? 1 : 0;
  }
  EXPECT_EQ(fine_tasks, divides() ? 8 : 0);
  // Others may have taken all before the core that has the divided task.
  EXPECT_LE(owners, divides() ? 1 : 0);
  EXPECT_EQ(cores.size() >= 2, divides());
}

INSTANTIATE_TEST_SUITE_P(Engines, DivisionTest, every_engine(), where_name);

}  // namespace
}  // namespace quadriga
