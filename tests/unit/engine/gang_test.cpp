// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/gang_test.cpp: tasks that start together: what they may do, what is refused,
// and what becomes of them when one can't run.
#include <quadriga/engine.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "unit/engine/engines.h"

namespace quadriga {
namespace {

class GangTest : public EngineTest {
 protected:
  bool has_two() const { return GetParam() != Where::host; }
  static std::shared_ptr<Gang> gang_of(std::uint32_t tasks) {
    return std::make_shared<Gang>(tasks);
  }
  std::vector<Future> together(const std::vector<GangTask>& tasks,
                               std::shared_ptr<Gang> gang = nullptr) {
    if (!gang) gang = gang_of(static_cast<std::uint32_t>(tasks.size()));
    return EngineAccess::submit_together(engine(), tasks, gang);
  }
  Errc code_of(const Future& task) {
    try {
      engine().wait(task, patience);
    } catch (const Error& error) {
      return error.code();
    }
    return Errc::internal;
  }
};

INSTANTIATE_TEST_SUITE_P(Engine, GangTest, every_engine(), where_name);

/// What a collective operation does: each gives its part, waits for the others', and takes the sum.
TEST_P(GangTest, ReducesAcrossDevices) {
  const std::uint32_t count = has_two() ? 2 : 1;
  const std::shared_ptr<Gang> gang = gang_of(count);
  std::atomic<double> sum{0};
  std::atomic<std::uint32_t> came{0};
  Codelet& add = codelet("all reduce", {Access::update}, [&](const Arguments& a) {
    sum.fetch_add(first(a));
    came.fetch_add(1);
    while (!is_virtual(GetParam()) && came.load() < count && !gang->broken.load())
      std::this_thread::yield();
    first(a) = is_virtual(GetParam()) ? came.load() : sum.load();
  });
  std::vector<GangTask> tasks;
  for (DeviceId device = 0; device < count; ++device)
    tasks.push_back({&add, {{tile(device + 1), Access::update}}, device});
  together(tasks, gang);
  wait();
  // Under the virtual clock one after the other.
  const double all = has_two() ? 3 : 1;
  for (std::uint32_t i = 0; i < count; ++i)
    EXPECT_EQ(home(i), is_virtual(GetParam()) ? i + 1 : all);
}

TEST_P(GangTest, NoneRunsIfOneCannot) {
  if (!has_two()) GTEST_SKIP() << "one device";
  Codelet& fails = codelet("fails", {Access::write},
                           [](const Arguments&) { throw Error(Errc::io, "no such file"); });
  std::atomic<int> ran{0};
  Codelet& reads =
      codelet("reads", {Access::update, Access::read}, [&](const Arguments&) { ++ran; });
  Codelet& alone = codelet("alone", {Access::update}, [&](const Arguments&) { ++ran; });
  const Data bad = tile();
  // Else they may be queued behind it before it fails, which the others learn by `broken`.
  EXPECT_EQ(code_of(engine().submit(fails, {{bad, Access::write}})), Errc::io);
  const std::shared_ptr<Gang> gang = gang_of(2);
  const std::vector<Future> tasks =
      together({{&alone, {{tile(), Access::update}}, 0},
                {&reads, {{tile(), Access::update}, {bad, Access::read}}, 1}},
               gang);
  for (const Future& task : tasks) EXPECT_EQ(code_of(task), Errc::cancelled);
  EXPECT_EQ(ran.load(), 0);
  EXPECT_TRUE(gang->broken.load());
}

TEST_P(GangTest, OneThatFailsIsToldToTheOthers) {
  if (!has_two() || is_virtual(GetParam())) GTEST_SKIP() << "bodies don't run at once";
  const std::shared_ptr<Gang> gang = gang_of(2);
  Codelet& fails = codelet("fails", {Access::update},
                           [](const Arguments&) { throw Error(Errc::io, "no such file"); });
  Codelet& waits = codelet("waits", {Access::update}, [&](const Arguments& a) {
    while (!gang->broken.load()) std::this_thread::yield();
    first(a) = 7;
  });
  const std::vector<Future> tasks = together(
      {{&fails, {{tile(), Access::update}}, 0}, {&waits, {{tile(), Access::update}}, 1}}, gang);
  EXPECT_EQ(code_of(tasks[0]), Errc::io);
  engine().wait(tasks[1], patience);
}

TEST_P(GangTest, AGroupThatIsCancelledEndsAll) {
  if (!has_two()) GTEST_SKIP() << "one device";
  TaskGroup group;
  Codelet& waits = gate({Access::update});
  const Data held = tile();
  engine().submit(waits, {{held, Access::update}});
  Codelet& alone = codelet(Access::update, [](const Arguments&) {});
  const std::vector<GangTask> tasks{{&alone, {{tile(), Access::update}}, 0},
                                    {&alone, {{held, Access::update}}, 1}};
  const std::vector<Future> futures =
      EngineAccess::submit_together(engine(), tasks, gang_of(2), &group);
  group.cancelled = true;
  open();
  for (const Future& task : futures) EXPECT_EQ(code_of(task), Errc::cancelled);
  EngineAccess::cancel(engine(), group);
}

/// So what its tasks share may live with it.
TEST_P(GangTest, LivesUntilItsTasksHaveEnded) {
  const DeviceId last = has_two() ? 1 : 0;
  std::weak_ptr<Gang> seen;
  const auto submit = [&](Codelet& codelet, DeviceId where) {
    std::vector<GangTask> tasks{{&codelet, {{tile(), Access::update}}, where}};
    if (has_two()) tasks.insert(tasks.begin(), {&codelet, {{tile(), Access::update}}, 0});
    const std::shared_ptr<Gang> gang = gang_of(static_cast<std::uint32_t>(tasks.size()));
    seen = gang;
    together(tasks, gang);
  };
  const auto ends = [&] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(240);
    while (!seen.expired() && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return seen.expired();
  };
  std::atomic<bool> lived{true};
  Codelet& sees = codelet(Access::update, [&](const Arguments&) {
    if (seen.expired()) lived = false;
  });
  submit(sees, last);
  wait();
  EXPECT_TRUE(lived);
  EXPECT_TRUE(ends());
  Codelet& fails =
      codelet(Access::update, [](const Arguments&) { throw Error(Errc::io, "no such file"); });
  submit(fails, last);
  EXPECT_THROW(wait(), Error);
  EXPECT_TRUE(ends()) << "its tasks failed";
  EXPECT_NE(failure_of([&] { submit(sees, 9); }).find("got 9"), std::string::npos);
  EXPECT_TRUE(seen.expired()) << "its tasks were refused";
}

TEST_P(GangTest, WhatCannotStartTogetherIsRefused) {
  Codelet& plus = codelet(Access::update, [](const Arguments&) {});
  Codelet& commutes = codelet(Access::commute, [](const Arguments&) {});
  Codelet& reads = codelet(Access::read, [](const Arguments&) {});
  const Data data = tile();
  const auto refusal = [&](const std::vector<GangTask>& tasks) {
    return failure_of([&] { together(tasks); });
  };
  EXPECT_NE(refusal({{&commutes, {{data, Access::commute}}, 0}}).find("read, write or update"),
            std::string::npos);
  EXPECT_NE(refusal({{&plus, {{data, Access::update}}, no_device}}).find("got none"),
            std::string::npos);
  EXPECT_NE(refusal({{&plus, {{data, Access::update}}, 9}}).find("got 9"), std::string::npos);
  EXPECT_NE(failure_of([&] {
              together({{&plus, {{data, Access::update}}, 0}}, gang_of(2));
            }).find("as many tasks"),
            std::string::npos);
  EXPECT_NE(refusal({{&plus, {{tile(), Access::update}}, 0}, {&plus, {{data, Access::update}}, 0}})
                .find("two are on device 0"),
            std::string::npos);
  if (!has_two()) return;
  EXPECT_NE(refusal({{&plus, {{data, Access::update}}, 0}, {&reads, {{data, Access::read}}, 1}})
                .find("share memory"),
            std::string::npos);
  // The slots that were taken meanwhile are free again.
  together({{&reads, {{data, Access::read}}, 0}, {&reads, {{data, Access::read}}, 1}});
  wait();
}

TEST_P(GangTest, ATaskMustFitItsOwnDevice) {
  if (!has_two()) GTEST_SKIP() << "one device";
  make([](WrappedOptions& options) {
    options.machine = options.machine ? options.machine : Machine::parse(options.devices);
    options.machine->devices[1].memory_bytes = 4096;
  });
  Codelet& plus = codelet(Access::update, [](const Arguments&) {});
  std::vector<double> large(4096);
  const Data data = engine().data(large.data(), 4096, 1, 4096, DType::float64);
  EXPECT_NE(
      failure_of([&] {
        together({{&plus, {{tile(), Access::update}}, 0}, {&plus, {{data, Access::update}}, 1}});
      }).find("largest device has 4 KiB"),
      std::string::npos);
  together({{&plus, {{data, Access::update}}, 0}, {&plus, {{tile(), Access::update}}, 1}});
  wait();
}

}  // namespace
}  // namespace quadriga
