// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/host_bodies_test.cpp: what bodies get, and what becomes of tasks that fail or
// can't run.
#include "engine/host_bodies.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>
#include <quadriga/promise.h>

#include <array>
#include <optional>
#include <stdexcept>
#include <vector>

#include "engine/bodies.h"
#include "engine/one_memory.h"

namespace quadriga {
namespace {

/// Is told of promises that were kept, and runs nothing.
class Told final : public OneMemory {
 public:
  void add(Datum&) override {}
  void remove(std::span<Datum* const>) override {}
  void check(const Task&) override {}
  void ready(Task&, std::uint64_t) override {}
  void kept(Task&, std::uint64_t, std::exception_ptr error) override {
    ++kept_promises;
    failed = error != nullptr;
  }
  bool help() override { return false; }
  bool wait(const std::function<bool()>&, Nanoseconds, Checked) override { return false; }
  bool bring_home(std::span<Datum* const>, std::span<const TaskRef>, Nanoseconds) override {
    return true;
  }
  void end_hold(Task&, std::span<Datum* const>, std::span<Datum* const>) override {}
  Nanoseconds now() const override { return 0; }
  std::uint64_t ended() const override { return 0; }
  void count(Counters&) const override {}
  void reset_counters() override {}
  std::string status() const override { return {}; }

  int kept_promises = 0;
  bool failed = false;
};

class HostBodiesTest : public testing::Test {
 protected:
  HostBodiesTest() {
    for (std::size_t i = 0; i < data_.size(); ++i) {
      data_[i].home = reinterpret_cast<std::byte*>(&homes_[i]);
      data_[i].rows = data_[i].cols = data_[i].ld = 1;
      data_[i].dtype = DType::float64;
    }
    task_.id = 7;
    task_.codelet = &codelet_;
    task_.children = 1;
    codelet_.name = "asked";
    codelet_.cpu = [this](const Arguments& arguments) {
      ++ran_;
      views_.assign(arguments.operands.begin(), arguments.operands.end());
      if (body_) body_(arguments);
    };
  }
  /// The task accesses the first of the data in these modes, one each.
  void accesses(std::initializer_list<Access> modes) {
    task_.take_slots(modes.size());
    std::size_t i = 0;
    for (const Access mode : modes) {
      task_.operands[i].datum = &data_[i];
      task_.operands[i++].access = mode;
    }
  }
  std::string failure() const {
    const std::exception_ptr error = failures_.of(task_.id);
    if (!error) return "none";
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& what) {
      return what.what();
    }
  }

  std::array<double, 12> homes_{};
  std::array<Datum, 12> data_;
  Codelet codelet_;
  Kernel body_;
  int ran_ = 0;
  std::vector<View> views_;
  Graph graph_{16};
  Failures failures_;
  Told executor_;
  Task task_;
  HostBodies bodies_{executor_, graph_, failures_, "cores", 1};
};

TEST_F(HostBodiesTest, ABodyGetsTheHomesOfHoweverManyOperands) {
  accesses({Access::read, Access::read, Access::read, Access::read, Access::read, Access::read,
            Access::read, Access::read, Access::read, Access::read, Access::read, Access::write});
  Task* inside = nullptr;
  body_ = [&](const Arguments&) { inside = current_task(graph_); };
  EXPECT_TRUE(bodies_.run(task_));
  ASSERT_EQ(views_.size(), homes_.size());
  for (std::size_t i = 0; i < homes_.size(); ++i) EXPECT_EQ(views_[i].data, &homes_[i]) << i;
  EXPECT_EQ(inside, &task_);
  EXPECT_EQ(current_task(graph_), nullptr);
  EXPECT_EQ(failure(), "none");
}

TEST_F(HostBodiesTest, WhatABodyThatThrowsWritesIsPoisoned) {
  accesses({Access::read, Access::write});
  body_ = [](const Arguments&) { throw std::runtime_error("as asked"); };
  EXPECT_TRUE(bodies_.run(task_)) << "it ran";
  EXPECT_EQ(failure(),
            "task 7 'asked' on cores (read 1x1 float64, write 1x1 float64) failed: as asked");
  EXPECT_FALSE(data_[0].poisoned);
  EXPECT_TRUE(data_[1].poisoned);
}

TEST_F(HostBodiesTest, WhatReadsPoisonDoesNotRunAndWhatOverwritesItCures) {
  failures_.note(std::make_exception_ptr(Error(Errc::io, "before")));
  data_[0].poisoned = true;
  accesses({Access::read, Access::write});
  EXPECT_FALSE(bodies_.run(task_));
  EXPECT_EQ(ran_, 0);
  EXPECT_TRUE(data_[1].poisoned) << "the failure spreads";
  accesses({Access::write});
  EXPECT_TRUE(bodies_.run(task_));
  EXPECT_EQ(ran_, 1);
  EXPECT_FALSE(data_[0].poisoned);
}

TEST_F(HostBodiesTest, CancelledTasksAndThoseWithoutContentDoNotRun) {
  accesses({Access::update});
  TaskGroup group;
  group.cancelled = true;
  task_.group = &group;
  EXPECT_FALSE(bodies_.run(task_));
  task_.group = nullptr;
  data_[0].poisoned = false;
  executor_.cancel(true);
  EXPECT_FALSE(bodies_.run(task_));
  executor_.cancel(false);
  data_[0].poisoned = false;
  data_[0].buffer = data_[0].home;
  task_.operands[0].precedes_writes = true;
  EXPECT_FALSE(bodies_.run(task_));
  EXPECT_NE(failure().find("nothing wrote it"), std::string::npos) << failure();
  EXPECT_EQ(ran_, 0);
}

TEST_F(HostBodiesTest, ADetachedTaskHasAPromiseThatItsBodyLeavesToOthers) {
  accesses({Access::update});
  codelet_.detaches = true;
  std::optional<Promise> promise;
  body_ = [&](const Arguments& arguments) { promise = *arguments.promise; };
  EXPECT_TRUE(bodies_.run(task_));
  EXPECT_EQ(task_.children, 2) << "the body and the promise";
  EXPECT_EQ(executor_.kept_promises, 0);
  promise->set_value();
  EXPECT_EQ(executor_.kept_promises, 1);
  EXPECT_FALSE(executor_.failed);
}

}  // namespace
}  // namespace quadriga
