// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/revoke_test.cpp: what was issued, but not begun, is taken back: it never runs,
// ends in its order, and nothing that relies on it runs.
#include <gtest/gtest.h>
#include <quadriga/engine.h>

#include <atomic>
#include <deque>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/engine_access.h"
#include "polled_backend.h"
#include "unit/engine/random_revocations.h"

namespace quadriga {
namespace {

/// Queueing a kernel named "blocks" on it takes until that is opened.
class BlockedBackend final : public PolledBackend {
 public:
  BlockedBackend(Machine machine, std::latch& begun, std::latch& opened)
      : PolledBackend(std::move(machine)), begun_(begun), opened_(opened) {}
  Event launch(StreamId stream, const Launch& launch) override {
    if (launch.name == "blocks") {
      begun_.count_down();
      opened_.wait();
    }
    return PolledBackend::launch(stream, launch);
  }

 private:
  std::latch& begun_;
  std::latch& opened_;
};

/// Two devices whose issuers are blocked by a launch each, or one of them.
class Revoke : public testing::Test {
 protected:
  explicit Revoke(int blocked = 1) : begun_(blocked) {
    WrappedOptions options;
    options.machine = Machine::parse("emulated:2,memory=1MiB,streams=1");
    options.machine->kernels["unit"][""][1] = 1e-6;  // many are issued ahead
    options.wrap_backend = [this](const std::unique_ptr<Backend>& inner) {
      return std::make_unique<BlockedBackend>(inner->machine(), begun_, opened_);
    };
    engine_ = EngineAccess::make_unique(std::move(options));
    for (DeviceId device = 0; device < static_cast<DeviceId>(blocked); ++device)
      blocking_.push_back(submit(codelet("blocks", {Access::update}, [](const Arguments&) {}),
                                 {{tile(), Access::update}}, device));
    begun_.wait();
  }
  ~Revoke() override { open(); }

  Engine& engine() { return *engine_; }
  Codelet& codelet(std::string name, std::vector<Access> access, Kernel body) {
    Codelet& made = codelets_.emplace_back();
    made.name = std::move(name);
    made.access = std::move(access);
    made.cpu = std::move(body);
    made.cost = [](const Arguments&) { return Cost{"unit", 1, 1}; };
    return made;
  }
  /// Counts how often it runs.
  Codelet& counting(std::vector<Access> access) {
    return codelet("counts", std::move(access), [this](const Arguments&) { ++ran_; });
  }
  Data tile() { return engine().data(&homes_.emplace_back(0), 1, 1, 1, DType::float64); }
  Future submit(const Codelet& codelet, std::vector<Operand> operands, DeviceId device,
                TaskGroup* group = nullptr) {
    SubmitOptions options;
    options.device = device;
    return EngineAccess::submit(engine(), codelet, operands, {}, options, group);
  }
  /// Once the driver has decided so often, all that may be issued is: each answer is of a step.
  void await_issued() {
    for (int i = 0; i < 100; ++i) static_cast<void>(engine().counters());
  }
  void open() {
    if (!opened_.try_wait()) opened_.count_down();
  }
  /// How it failed, if it has.
  std::optional<Errc> code_of(const Future& task) {
    try {
      engine().wait(task);
    } catch (const Error& error) {
      return error.code();
    }
    return {};
  }

  std::latch begun_;
  std::latch opened_{1};
  std::atomic<int> ran_{0};
  std::vector<Future> blocking_;

 private:
  std::deque<double> homes_;
  std::deque<Codelet> codelets_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(Revoke, TasksOfACancelledGroupThatAreQueuedNeverRun) {
  TaskGroup group;
  std::vector<Future> tasks;
  Codelet& counts = counting({Access::update});
  for (int i = 0; i < 20; ++i)
    tasks.push_back(submit(counts, {{tile(), Access::update}}, 0, &group));
  const Future other = submit(counts, {{tile(), Access::update}}, 0);
  await_issued();
  group.cancelled = true;
  open();
  for (const Future& each : tasks) EXPECT_EQ(code_of(each), Errc::cancelled);
  EXPECT_EQ(code_of(blocking_[0]), std::nullopt);
  EXPECT_EQ(code_of(other), std::nullopt);
  EXPECT_EQ(ran_.load(), 1) << "the one of no group";
  EngineAccess::cancel(engine(), group);
}

TEST_F(Revoke, SoAreThoseOfAnEngineThatIsCancelled) {
  std::vector<Future> tasks;
  Codelet& counts = counting({Access::update});
  for (int i = 0; i < 20; ++i) tasks.push_back(submit(counts, {{tile(), Access::update}}, 0));
  await_issued();
  std::thread cancels([&] { engine().cancel(); });
  // What is submitted while it is being cancelled ends so, on a device that isn't blocked.
  Codelet& probes = codelet("probes", {Access::update}, [](const Arguments&) {});
  while (code_of(submit(probes, {{tile(), Access::update}}, 1)) != Errc::cancelled)
    std::this_thread::yield();
  open();
  cancels.join();
  EXPECT_EQ(ran_.load(), 0);
  for (const Future& each : tasks) EXPECT_EQ(code_of(each), Errc::cancelled);
  EXPECT_EQ(code_of(submit(counts, {{tile(), Access::update}}, 0)), std::nullopt)
      << "it stays usable";
  EXPECT_EQ(ran_.load(), 1);
}

// Behind it on its device and on another one.
TEST_F(Revoke, WhatReliesOnIt) {
  TaskGroup group;
  const Data data = tile();
  Codelet& counts = counting({Access::update});
  const Future writer = submit(counts, {{data, Access::update}}, 0, &group);
  const Future here = submit(counts, {{data, Access::update}}, 0);
  const Future there = submit(counts, {{data, Access::update}}, 1);
  Codelet& writes = counting({Access::write});
  const Future again = submit(writes, {{data, Access::write}}, 1);
  await_issued();
  group.cancelled = true;
  open();
  for (const Future& each : {writer, here, there}) EXPECT_EQ(code_of(each), Errc::cancelled);
  EXPECT_EQ(code_of(again), std::nullopt);
  EXPECT_EQ(ran_.load(), 1) << "the one that needs nothing of it";
  EngineAccess::cancel(engine(), group);
}

class RevokeGangs : public Revoke {
 protected:
  explicit RevokeGangs(int blocked = 1) : Revoke(blocked) {}
  std::vector<Future> together(const Codelet& codelet, TaskGroup& group) {
    const std::vector<GangTask> tasks{{&codelet, {{tile(), Access::update}}, 0},
                                      {&codelet, {{tile(), Access::update}}, 1}};
    return EngineAccess::submit_together(engine(), tasks, std::make_shared<Gang>(2), &group);
  }
};

TEST_F(RevokeGangs, OneThatHasBegunRunsAsAWhole) {
  TaskGroup group;
  std::latch one_ran(1);
  std::atomic<int> members{0};
  Codelet& member = codelet("member", {Access::update}, [&](const Arguments&) {
    if (members.fetch_add(1) == 0) one_ran.count_down();
  });
  const std::vector<Future> gang = together(member, group);
  one_ran.wait();  // on device 1; device 0 is blocked
  group.cancelled = true;
  open();
  for (const Future& each : gang) EXPECT_EQ(code_of(each), std::nullopt);
  EXPECT_EQ(members.load(), 2);
  EngineAccess::cancel(engine(), group);
}

class RevokeBlockedGangs : public RevokeGangs {
 protected:
  RevokeBlockedGangs() : RevokeGangs(2) {}
};

TEST_F(RevokeBlockedGangs, OneThatHasNotIsTakenBackAsAWhole) {
  TaskGroup group;
  const std::vector<Future> gang = together(counting({Access::update}), group);
  await_issued();
  group.cancelled = true;
  open();
  for (const Future& each : gang) EXPECT_EQ(code_of(each), Errc::cancelled);
  EXPECT_EQ(ran_.load(), 0);
  EngineAccess::cancel(engine(), group);
}

TEST(Revocations, RandomOnesLeaveOnlyWhatRanAsAWhole) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) EXPECT_EQ(run_random_revocations(seed), "");
}

}  // namespace
}  // namespace quadriga
