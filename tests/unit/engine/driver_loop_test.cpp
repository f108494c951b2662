// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/driver_loop_test.cpp: what a step of driving takes, in which order, and what
// follows. Emulated devices under the virtual clock, without driver, thread or lock.
#include "engine/driver_loop.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <optional>
#include <string>
#include <vector>

#include "device/factory.h"
#include "engine/kernel_streams.h"
#include "engine/schedule_news.h"
#include "schedule/policy_registry.h"

namespace quadriga {
namespace {

struct CountedBodies final : TaskRunner {
  void run(const PlannedTask&, const Arguments&) override { ++count; }
  int count = 0;
};

class DriverLoopTest : public ::testing::Test {
 protected:
  DriverLoopTest() {
    spaces_.for_each_stream(
        machine_, [&](DeviceId device, StreamId stream, StreamKind kind, std::string name) {
          record_.open(device, stream, kind, std::move(name));
        });
    kernel_streams_ = make_kernel_streams(*backend_, machine_, record_);
    spaces_.take_memory(machine_);
    scheduler_.emplace(machine_, instructions_, news_, bodies_,
                       ScheduleOptions{.policy = make_policy("", {machine_, 1}),
                                       .memory = {},
                                       .spaces = spaces_.spaces(),
                                       .kernel_streams = kernel_streams_});
    issuers_.emplace(*backend_, record_.device_of_stream(), false);
    loop_.emplace(DriverLoop::Parts{*backend_, instructions_, inbox_, releases_, waiters_, record_,
                                    *scheduler_, *issuers_},
                  true);
    datum_.home = home_;
    datum_.rows = datum_.ld = sizeof home_;
    datum_.cols = 1;
    inbox_.post({.kind = Message::Kind::data, .datum = &datum_});
    codelet_.name = "task";
    codelet_.access = {Access::update};
    codelet_.cost = [](const Arguments&) { return Cost{"unit", 1, 1}; };
    codelet_.cpu = [](const Arguments&) {};
  }
  /// Submits a task that nothing precedes, and tells the loop of it; `id`: as its message says.
  void submit(std::uint64_t id = 0) {
    Task& task = *graph_.allocate();
    task.codelet = &codelet_;
    task.device = task.owner = no_device;
    task.take_slots(1);
    task.slots()[0].datum = &datum_;
    task.slots()[0].access = Access::update;
    task.children.store(1);
    const std::uint64_t predecessors = graph_.link(task);
    inbox_.post({.kind = Message::Kind::submitted, .task = &task});
    Graph::unguard(task, predecessors);
    inbox_.post({.kind = Message::Kind::ready, .task = &task, .id = id ? id : task.id.load()});
  }
  static Machine machine() {
    Machine made = Machine::parse("emulated:1,memory=1MiB");
    made.kernels["unit"]["emulated"][1] = 1e-5;
    return made;
  }
  void run() {
    while (loop_->step(never)) continue;
  }
  std::shared_ptr<DriverRequest> ask(const std::function<bool()>& work) {
    auto request = std::make_shared<DriverRequest>(work);
    inbox_.post(request);
    return request;
  }
  static bool is_answered(const DriverRequest& request) {
    return request.await_for(std::chrono::nanoseconds(0));
  }

  std::byte home_[64] = {};
  Machine machine_ = machine();
  std::unique_ptr<Backend> backend_ = make_virtual_backend(machine_);
  DeviceSpaces spaces_{*backend_, machine_};
  Graph graph_{8};
  Failures failures_;
  Recorder recorder_{machine_, false};
  RunRecord record_{recorder_, machine_, *backend_};
  Inbox inbox_;
  Releases releases_{graph_, inbox_};
  Waiters waiters_{[] { return Nanoseconds{0}; }};
  ScheduleNews news_{machine_, spaces_, {failures_, record_, releases_, waiters_}, nullptr, false};
  CountedBodies bodies_;
  Instructions instructions_;
  std::vector<std::vector<StreamId>> kernel_streams_;
  Codelet codelet_;
  Datum datum_;
  std::optional<Scheduler> scheduler_;
  std::optional<Issuers> issuers_;
  std::optional<DriverLoop> loop_;
};

TEST_F(DriverLoopTest, ATaskRunsFromItsMessagesToItsEnd) {
  submit();
  run();
  EXPECT_EQ(bodies_.count, 1);
  EXPECT_EQ(releases_.count(), 1u);
  EXPECT_FALSE(scheduler_->in_flight());
}

TEST_F(DriverLoopTest, AMessageOfATaskThatHasEndedIsNotItsSuccessorsInTheSlot) {
  submit(77);
  run();
  EXPECT_EQ(bodies_.count, 0);
}

TEST_F(DriverLoopTest, WithNothingToDoNothingHappens) {
  EXPECT_FALSE(loop_->step(never));
  EXPECT_EQ(backend_->now(), 0);
}

TEST_F(DriverLoopTest, RequestsComeAfterTheMessages) {
  bool is_known = false;
  const std::function<bool()> work = [&] {
    is_known = datum_.tile != no_tile;
    return true;
  };
  const auto request = ask(work);
  loop_->step(never);
  EXPECT_TRUE(is_known);
  EXPECT_TRUE(is_answered(*request));
}

TEST_F(DriverLoopTest, ARequestIsTriedAgainUntilItIsDone) {
  int tries = 0;
  const std::function<bool()> work = [&] { return ++tries == 3; };
  const auto request = ask(work);
  for (int i = 0; i < 2; ++i) {
    loop_->step(never);
    EXPECT_FALSE(is_answered(*request)) << i;
  }
  loop_->step(never);
  EXPECT_TRUE(is_answered(*request));
  loop_->step(never);
  EXPECT_EQ(tries, 3);
}

TEST_F(DriverLoopTest, WhatWasWithdrawnIsNotRun) {
  int tries = 0;
  const std::function<bool()> work = [&] { return ++tries > 9; };
  const auto request = ask(work);
  request->withdraw();
  loop_->step(never);
  loop_->step(never);
  EXPECT_EQ(tries, 0);
}

TEST_F(DriverLoopTest, WhatARequestThrowsAnswersThemAll) {
  const std::function<bool()> waits = [] { return false; };
  const std::function<bool()> throws = []() -> bool { throw Error(Errc::internal, "planted"); };
  const auto before = ask(waits), culprit = ask(throws), behind = ask(waits);
  EXPECT_THROW(loop_->step(never), Error);
  EXPECT_THROW(before->await(), Error);
  EXPECT_THROW(culprit->await(), Error);
  EXPECT_THROW(behind->await(), Error);
}

TEST_F(DriverLoopTest, CancelledTasksEndWithoutHavingRun) {
  loop_->cancel(true);
  submit();
  run();
  EXPECT_EQ(bodies_.count, 0);
  EXPECT_EQ(releases_.count(), 1u);
  loop_->cancel(false);
  submit();
  run();
  EXPECT_EQ(releases_.count(), 2u) << "others go on";
}

}  // namespace
}  // namespace quadriga
