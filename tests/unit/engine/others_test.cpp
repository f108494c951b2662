// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/others_test.cpp: tasks of several engines on the same memory follow each other.
#include <gtest/gtest.h>
#include <quadriga/engine.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "sanitized.h"
#include "unit/engine/engines.h"

namespace quadriga {
namespace {

constexpr int number = 50;
/// That a task gives one that doesn't wait for it; one that waits needs none.
constexpr auto a_moment = std::chrono::milliseconds(100);

Codelet made(std::string name, std::vector<Access> access, Kernel body) {
  Codelet codelet;
  codelet.name = std::move(name);
  codelet.access = std::move(access);
  codelet.cpu = std::move(body);
  return codelet;
}

double& first_of(const Arguments& arguments) { return *arguments.operands[0].as<double>(); }

/// Tasks of two engines on `a_`, whose ten elements begin with 0.
class OthersTest : public testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  EngineOptions options(int which) const {
    EngineOptions made;
    made.devices = which == 0 ? std::get<0>(GetParam()) : std::get<1>(GetParam());
    return made;
  }
  Data data(Engine& engine, bool resident = false) {
    DataOptions given;
    given.resident = resident;
    return engine.data(a_.data(), 10, 1, 10, DType::float64, given);
  }
  Data part(Engine& engine) { return engine.data(a_.data(), 2, 1, 2, DType::float64); }
  void wait_for_others() const {
    const auto end = std::chrono::steady_clock::now() + a_moment;
    while (!has_come_.load() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  }

  std::array<double, 10> a_{};
  std::atomic<bool> has_come_{false};
  double seen_ = -1;
  const Codelet increase_ = made("increase", {Access::update}, [](const Arguments& a) {
    const double was = first_of(a);
    std::this_thread::yield();
    first_of(a) = was + 1;
  });
  /// Gives whoever doesn't wait for it the time to come.
  const Codelet slow_ = made("slow", {Access::update}, [this](const Arguments& a) {
    wait_for_others();
    first_of(a) += 1;
  });
  const Codelet slow_look_ = made("slow_look", {Access::read}, [this](const Arguments& a) {
    wait_for_others();
    seen_ = first_of(a);
  });
  const Codelet look_ = made("look", {Access::read}, [this](const Arguments& a) {
    has_come_ = true;
    seen_ = first_of(a);
  });
  const Codelet overwrite_ = made("overwrite", {Access::write}, [this](const Arguments& a) {
    has_come_ = true;
    std::fill_n(a.operands[0].as<double>(), a.operands[0].rows, 7);
  });
};

TEST_P(OthersTest, IncrementsByTurns) {
  Engine e(options(0));
  Engine f(options(1));
  for (int i = 0; i < number; ++i) {
    e.submit(increase_, {{data(e), Access::update}});
    f.submit(increase_, {{data(f), Access::update}});
  }
  e.wait(patience);
  f.wait(patience);
  EXPECT_EQ(a_[0], 2 * number);
}

TEST_P(OthersTest, AReaderFollowsAnotherEnginesWriter) {
  for (const bool resident : {false, true}) {
    a_.fill(0);
    has_come_ = false;
    Engine e(options(0));
    Engine f(options(1));
    for (int i = 1; i <= 2; ++i) {
      e.submit(slow_, {{data(e, resident), Access::update}});
      f.wait(f.submit(look_, {{part(f), Access::read}}), patience);
      EXPECT_EQ(seen_, i);
    }
  }
}

TEST_P(OthersTest, AWriterFollowsAnotherEnginesReader) {
  Engine e(options(0));
  Engine f(options(1));
  const Data mine = data(e, true);
  const Future looked = e.submit(slow_look_, {{mine, Access::read}});
  f.submit(overwrite_, {{data(f), Access::write}});
  e.wait(looked, patience);
  EXPECT_EQ(seen_, 0);
  e.wait(e.submit(look_, {{mine, Access::read}}), patience);  // no device has what was there
  EXPECT_EQ(seen_, 7);
}

TEST_P(OthersTest, AWritersFailureIsThrown) {
  Engine e(options(0));
  Engine f(options(1));
  const Codelet broken = made("broken", {Access::update},
                              [](const Arguments&) { throw std::runtime_error("no such line"); });
  e.submit(broken, {{data(e), Access::update}});
  const std::string told = failure_of([&] { f.submit(increase_, {{data(f), Access::update}}); });
  EXPECT_NE(told.find("no such line"), std::string::npos) << told;
}

TEST_P(OthersTest, ABodyPassesOnWhatItsTaskAccesses) {
  Engine f(options(1));
  const Data theirs = data(f);
  EngineOptions host;
  host.devices = "cpu:2";
  Engine e(host);
  const Codelet body = made("body", {Access::update}, [&](const Arguments&) {
    for (int i = 0; i < 3; ++i) f.submit(increase_, {{theirs, Access::update}});
    f.wait(patience);
  });
  for (int i = 0; i < 2; ++i) e.submit(body, {{data(e), Access::update}});
  e.wait(patience);
  EXPECT_EQ(a_[0], 6);
}

TEST_P(OthersTest, ABodyDoesNotWaitForOtherTasks) {
  Engine f(options(1));
  const Data theirs = data(f);
  EngineOptions host;
  host.devices = "cpu:2";
  Engine e(host);
  std::atomic<bool> has_tried{false};
  const Codelet later = made("later", {Access::update}, [&](const Arguments& a) {
    while (!has_tried.load()) std::this_thread::yield();
    first_of(a) += 1;
  });
  std::string told;
  const Codelet body = made("body", {}, [&](const Arguments&) {
    told = failure_of([&] { f.submit(increase_, {{theirs, Access::update}}); });
    has_tried = true;
  });
  e.submit(later, {{data(e), Access::update}});
  e.submit(body, {});
  e.wait(patience);
  EXPECT_NE(told.find("10 x 1 float64"), std::string::npos) << told;
  EXPECT_NE(told.find("task 1 of another engine hasn't ended"), std::string::npos) << told;
  f.submit(increase_, {{theirs, Access::update}});
  f.wait(patience);
  EXPECT_EQ(a_[0], 2);
}

/// Whoever waits in it leaves it before it goes.
TEST_P(OthersTest, AnEngineThatEndsMeanwhile) {
  Engine f(options(1));
  const Data theirs = data(f);
  for (int i = 0; i < 20; ++i) {
    auto e = std::make_unique<Engine>(options(0));
    for (int j = 0; j < 10; ++j) e->submit(increase_, {{data(*e), Access::update}});
    std::thread other([&] {
      try {
        f.submit(increase_, {{theirs, Access::update}});
      } catch (const Error& error) {  // what it waited for was cancelled
        EXPECT_EQ(error.code(), Errc::cancelled) << error.what();
      }
    });
    e.reset();
    other.join();
    f.wait(patience);
  }
}

TEST_P(OthersTest, ThreadsWithEnginesOfTheirOwnNeverWaitForEachOther) {
  // Who submits at the same time isn't ordered, and what their tasks make of the memory is theirs.
  if (is_thread_sanitized) GTEST_SKIP() << "these tasks race, which isn't what is looked at";
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([this, i] {
      Engine engine(options(i % 2));
      for (int j = 0; j < number; ++j) engine.submit(increase_, {{data(engine), Access::update}});
      engine.wait(patience);
    });
  for (std::thread& each : threads) each.join();
}

INSTANTIATE_TEST_SUITE_P(Engines, OthersTest,
                         testing::Combine(testing::Values("cpu:2", "emulated:2,memory=1MiB"),
                                          testing::Values("cpu:2", "emulated:2,memory=1MiB")));

}  // namespace
}  // namespace quadriga
