// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/worker_queues_test.cpp: which task a worker runs next.
#include "engine/worker_queues.h"

#include <gtest/gtest.h>
#include <quadriga/machine.h>

#include <memory>
#include <set>
#include <vector>

#include "graph/graph.h"

namespace quadriga {
namespace {

class WorkerQueuesTest : public ::testing::Test {
 protected:
  static constexpr std::size_t submitter = 2;
  Task& task(std::int32_t priority = 0) {
    auto& made = tasks_.emplace_back(std::make_unique<Task>());
    made->id = tasks_.size();
    made->priority = priority;
    return *made;
  }

  Machine machine_ = Machine::parse("cpu:2");
  WorkerQueues queues_{submitter + 1, [this](std::size_t i) {
                         return make_policy("affinity", {machine_, i + 1});
                       }};
  std::vector<std::unique_ptr<Task>> tasks_;
};

TEST_F(WorkerQueuesTest, OwnTasksComeInOrderButForUrgentOnes) {
  Task& first = task();
  Task& second = task();
  Task& urgent = task(3);
  for (Task* const each : {&first, &second, &urgent}) queues_.push(0, *each);
  EXPECT_EQ(queues_.urgency(0), 3);
  for (Task* const each : {&urgent, &first, &second}) {
    const WorkerQueues::Next next = queues_.next(0);
    EXPECT_EQ(next.task, each);
    EXPECT_FALSE(next.stolen);
  }
  EXPECT_EQ(queues_.next(0).task, nullptr);
  EXPECT_FALSE(queues_.has_tasks());
}

TEST_F(WorkerQueuesTest, WhoHasNothingTakesFromOthers) {
  queues_.push(1, task());
  EXPECT_TRUE(queues_.next(0).stolen);
  queues_.push(submitter, task());
  const WorkerQueues::Next next = queues_.next(0);
  EXPECT_EQ(next.task, tasks_.back().get());
  EXPECT_FALSE(next.stolen) << "what was submitted belongs to nobody";
}

TEST_F(WorkerQueuesTest, ABatchIsAPartAndCanBeReturned) {
  constexpr std::size_t count = 40;
  for (std::size_t i = 0; i < count; ++i) queues_.push(submitter, task());
  std::set<Task*> seen{queues_.next(0).task};
  const std::size_t left = queues_.size(submitter);
  EXPECT_LT(left, count - 1) << "one at a time";
  EXPECT_GE(left, count / 2) << "nothing is left for others";
  queues_.return_batch(0);
  EXPECT_EQ(queues_.size(0) + left, count - 1);
  while (Task* const each = queues_.next(1).task) EXPECT_TRUE(seen.insert(each).second);
  EXPECT_EQ(seen.size(), count);
}

}  // namespace
}  // namespace quadriga
