// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/let_go_test.cpp: bodies that hold the last handle of what waits for tasks.
#include "engine/let_go.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

namespace quadriga {
namespace {

/// Removes its data as it ends, which waits for their tasks.
class Owner {
 public:
  Owner(Engine& engine, std::atomic<int>& ended)
      : data(engine.temporary(4, 4, DType::float64)), engine_(engine), ended_(ended) {}
  ~Owner() {
    engine_.remove(data, true);
    ++ended_;
  }
  const Data data;

 private:
  Engine& engine_;
  std::atomic<int>& ended_;
};

class LetGoAtOnce : public ::testing::Test {
 protected:
  std::shared_ptr<Owner> make(Engine& engine) { return {new Owner(engine, ended_), LetGo(engine)}; }
  Codelet codelet(std::vector<Access> access, Kernel body) {
    Codelet made;
    made.name = "let_go";
    made.access = std::move(access);
    made.host_only = true;
    made.submits = true;
    made.cpu = std::move(body);
    return made;
  }
  std::atomic<int> ended_{0};
};

class LetGoTest : public LetGoAtOnce, public ::testing::WithParamInterface<const char*> {};

TEST_P(LetGoTest, ABodyThatUsesIt) {
  Engine engine({GetParam()});
  std::shared_ptr<Owner> owner = make(engine);
  int seen = -1;
  const Codelet drop = codelet({Access::write}, [&](const Arguments&) {
    owner.reset();
    seen = ended_.load();
  });
  engine.submit(drop, {{owner->data, Access::write}});
  engine.wait(60);
  EXPECT_EQ(seen, 0);
  EXPECT_EQ(ended_.load(), 1);
}

TEST_P(LetGoTest, OneAfterAnotherWithoutAWaitForAll) {
  Engine engine({GetParam()});
  std::shared_ptr<Owner> owner;
  const Codelet drop = codelet({Access::write}, [&](const Arguments&) { owner.reset(); });
  for (int i = 1; i <= 3; ++i) {
    owner = make(engine);
    const Future future = engine.submit(drop, {{owner->data, Access::write}});
    // A task is counted a moment after it has ended.
    do engine.wait(future, 60);
    while (ended_.load() < i);
  }
}

TEST_P(LetGoTest, TheEngineEndsIt) {
  {
    Engine engine({GetParam()});
    std::shared_ptr<Owner> owner = make(engine);
    std::atomic<bool> has_dropped{false};
    const Codelet drop = codelet({Access::write}, [&](const Arguments&) {
      owner.reset();
      has_dropped.store(true);
      has_dropped.notify_one();
    });
    engine.submit(drop, {{owner->data, Access::write}});
    has_dropped.wait(false);
    EXPECT_EQ(ended_.load(), 0);
    // The codelet ends before the engine does: its task must have.
    while (engine.counters().ended == 0) std::this_thread::yield();
  }
  EXPECT_EQ(ended_.load(), 1);
}

TEST_F(LetGoAtOnce, OutsideOfBodies) {
  Engine engine({"cpu:1"});
  make(engine).reset();
  EXPECT_EQ(ended_.load(), 1);
}

TEST_F(LetGoAtOnce, InTheBodyThatMadeIt) {
  Engine engine({"cpu:1"});
  int seen = -1;
  const Codelet pass = codelet({}, [&](const Arguments&) {
    make(engine).reset();
    seen = ended_.load();
  });
  engine.submit(pass, {});
  engine.wait(60);
  EXPECT_EQ(seen, 1);
}

/// Whoever waits for an engine under the virtual clock runs its bodies.
TEST_F(LetGoAtOnce, InABodyOfAnotherEngineInsideOfOneThatUsesIt) {
  Engine engine({"cpu:1"});
  std::shared_ptr<Owner> owner = make(engine);
  int seen = -1;
  const Codelet drop = codelet({}, [&](const Arguments&) {
    owner.reset();
    seen = ended_.load();
  });
  Codelet timed = drop;
  timed.cost = [](const Arguments&) { return Cost::of_seconds(1e-3); };
  const Codelet around = codelet({Access::write}, [&](const Arguments&) {
    EngineOptions options;
    options.devices = "cpu:1";
    options.virtual_clock = true;
    Engine inner(options);
    inner.submit(timed, {});
    inner.wait(60);
  });
  engine.submit(around, {{owner->data, Access::write}});
  engine.wait(60);
  EXPECT_EQ(seen, 0);
  EXPECT_EQ(ended_.load(), 1);
}

INSTANTIATE_TEST_SUITE_P(Kinds, LetGoTest, ::testing::Values("cpu:1", "cpu:2", "emulated:1"));

}  // namespace
}  // namespace quadriga
