// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/pipeline/pending_test.cpp: runs follow tasks that access what their source lends.
#include <gtest/gtest.h>
#include <quadriga/pipeline.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "unit/pipeline/flow_fixture.h"

namespace quadriga {
namespace {

/// That a task gives a run that doesn't wait for it; one that waits needs none.
constexpr auto a_moment = std::chrono::milliseconds(100);
constexpr std::int64_t length = 100;

class PendingTest : public FlowTest {
 protected:
  PendingTest() {
    slow_ = increment_;
    slow_.name = "slow";
    slow_.cpu = [this, add = increment_.cpu](const Arguments& a) {
      wait_for_others();
      add(a);
    };
    look_.name = "look";
    look_.access = {Access::read};
    look_.cost = increment_.cost;
    look_.cpu = [this](const Arguments& a) {
      wait_for_others();
      seen_ = a.operands[0].as<double>()[0];
    };
    overwrite_ = increment_;
    overwrite_.name = "overwrite";
    overwrite_.cpu = [this](const Arguments& a) {
      has_come_ = true;
      std::fill_n(a.operands[0].as<double>(), a.operands[0].rows, 7);
    };
    quick_ = double_;
    quick_.cpu = [this, twice = double_.cpu](const Arguments& a) {
      has_come_ = true;
      twice(a);
    };
  }
  void wait_for_others() const {
    const auto end = std::chrono::steady_clock::now() + a_moment;
    while (!has_come_.load() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  }
  Data data(bool resident = false) {
    DataOptions given;
    given.resident = resident;
    return engine_->data(a_.data(), length, 1, length, DType::float64, given);
  }
  /// Two halves of the memory.
  Pipeline::Source halves() {
    return [this](Chunk& chunk) {
      if (chunk.number() > 1) return false;
      constexpr std::int64_t half = length / 2;
      double* const at = a_.data() + half * static_cast<std::int64_t>(chunk.number());
      chunk.lend("x", {at, half, 1, half, DType::float64});
      return true;
    };
  }

  std::vector<double> a_ = std::vector<double>(length);
  std::atomic<bool> has_come_{false};
  double seen_ = -1;
  Codelet slow_;
  Codelet look_;
  Codelet overwrite_;
  Codelet quick_;
};

TEST_P(PendingTest, ARunReadsWhatPendingTasksWrite) {
  for (const bool resident : {false, true}) {
    std::ranges::fill(a_, 0);
    has_come_ = false;
    const Data mine = data(resident);
    engine_->submit(slow_, {{mine, Access::update}});
    Pipeline pipeline(options());
    pipeline.source(halves()).kernel(quick_, {reads("x"), writes("y", like_x)});
    int chunks = 0;
    for (; const auto chunk = pipeline.next(); ++chunks)
      EXPECT_EQ(chunk->values<double>("y")[0], 2) << chunks;
    EXPECT_EQ(chunks, 2);
    engine_->wait();
    engine_->remove(mine);
  }
}

TEST_P(PendingTest, FunctionsOnTheHostDo) {
  engine_->submit(slow_, {{data(), Access::update}});
  std::atomic<int> right{0};
  Pipeline pipeline(options());
  pipeline.source(halves()).parallel([&](Chunk& chunk) {
    has_come_ = true;
    right += chunk.values<double>("x")[0] == 1;
  });
  pipeline.run();
  EXPECT_EQ(right.load(), 2);
}

TEST_P(PendingTest, ARunWritesAfterPendingTasksHaveRead) {
  const Data mine = data(true);
  const Future looked = engine_->submit(look_, {{mine, Access::read}});
  Pipeline pipeline(options());
  pipeline.source(halves()).kernel(overwrite_, {updates("x")});
  pipeline.run();
  engine_->wait(looked);
  EXPECT_EQ(seen_, 0);
  engine_->wait(engine_->submit(look_, {{mine, Access::read}}));
  EXPECT_EQ(seen_, 7);  // no device has what was there before
}

TEST_P(PendingTest, ConstantsDo) {
  engine_->submit(slow_, {{data(), Access::update}});
  Codelet sum = double_;
  sum.access = {Access::read, Access::read, Access::write};
  sum.cpu = [this](const Arguments& a) {
    has_come_ = true;
    a.operands[2].as<double>()[0] = a.operands[1].as<double>()[0];
  };
  Pipeline pipeline(options());
  pipeline.source(numbers({1}))
      .kernel(sum, {reads("x"), constant("c", {a_.data(), length, 1, length, DType::float64}),
                    writes("y", like_x)});
  const auto chunk = pipeline.next();
  ASSERT_TRUE(chunk.has_value());
  EXPECT_EQ(chunk->values<double>("y")[0], 1);
}

TEST_P(PendingTest, AnotherEnginesTasks) {
  engine_->submit(slow_, {{data(), Access::update}});
  PipelineOptions own;
  own.devices = "cpu:2";
  Pipeline pipeline(own);
  pipeline.source(halves()).kernel(quick_, {reads("x"), writes("y", like_x)});
  while (const auto chunk = pipeline.next()) EXPECT_EQ(chunk->values<double>("y")[0], 2);
}

/// Also where the access begins after the run, in the loop over its results.
TEST_P(PendingTest, WithinOnHostARunWaitsForNobody) {
  for (const bool begins_before : {true, false}) {
    const Data mine = data();
    HostAccess access;
    if (begins_before) access = engine_->on_host(mine, Access::update);
    PipelineOptions few = options();
    few.look_ahead = 1;
    Pipeline results(few);
    results.source(halves()).kernel(quick_, {reads("x"), writes("y", like_x)});
    int chunks = 0;
    for (; const auto chunk = results.next(); ++chunks)
      if (!begins_before && chunks == 0) access = engine_->on_host(mine, Access::update);
    EXPECT_EQ(chunks, 2);
    access.release();
    engine_->remove(mine);
  }
}

TEST_P(PendingTest, WhatTheWriterThrew) {
  Codelet broken = increment_;
  broken.cpu = [](const Arguments&) { throw std::runtime_error("no such line"); };
  engine_->submit(broken, {{data(), Access::update}});
  Pipeline pipeline(options());
  std::string told;
  try {
    pipeline.source(halves()).kernel(quick_, {reads("x"), writes("y", like_x)});
    pipeline.run();
  } catch (const Error& error) {
    told = error.what();
  }
  EXPECT_NE(told.find("no such line"), std::string::npos) << told;
}

INSTANTIATE_TEST_SUITE_P(Engines, PendingTest,
                         testing::Values(Where::host, Where::emulated, Where::virtual_clock),
                         engine_name);

}  // namespace
}  // namespace quadriga
