// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/graph/sharing_test.cpp: one memory is one datum, what overlaps shares order and
// content, and the host writes between waits and within on_host().
#include <quadriga/engine.h>

#include <numeric>
#include <thread>

#include "engine/on_host.h"
#include "unit/engine/engines.h"

namespace quadriga {
namespace {

class SharingTest : public EngineTest {
 protected:
  Codelet& more_ = codelet("more", {Access::update}, [](const Arguments& arguments) {
    const View& view = arguments.operands[0];
    for (std::int64_t j = 0; j < view.cols; ++j)
      for (std::int64_t i = 0; i < view.rows; ++i) view.as<double>()[i + j * view.ld] += 1;
  });
  Codelet& twice_ = codelet("twice", {Access::read, Access::write}, [](const Arguments& a) {
    for (std::int64_t i = 0; i < a.operands[1].rows; ++i)
      a.operands[1].as<double>()[i] = 2 * a.operands[0].as<double>()[i];
  });
  Codelet& sum_ = codelet("sum", {Access::read, Access::write}, [](const Arguments& arguments) {
    const View& view = arguments.operands[0];
    double total = 0;
    for (std::int64_t j = 0; j < view.cols; ++j)
      for (std::int64_t i = 0; i < view.rows; ++i) total += view.as<double>()[i + j * view.ld];
    first(arguments, 1) = total;
  });
  Data vector(double* from, std::int64_t length, DataOptions options = {}) {
    return engine().data(from, length, 1, length, DType::float64, options);
  }
  bool has_devices() const { return GetParam() != Where::host; }
  /// An engine that copies 100,000 elements home in 0.4 s.
  void make_slow() {
    make([](WrappedOptions& options) {
      if (GetParam() == Where::emulated) options.devices = "emulated:1,d2h=2MB/s;cpu:1";
    });
  }
  SubmitOptions on_a_device() const { return {.device = DeviceId{0}}; }
};

INSTANTIATE_TEST_SUITE_P(Engine, SharingTest, every_engine(), where_name);

TEST_P(SharingTest, DataWithoutElementsComeAndGo) {
  std::array<double, 4> memory{};
  for (int i = 0; i < 10; ++i) {
    const std::array<Data, 3> empty{vector(memory.data(), 0), vector(nullptr, 0),
                                    engine().data(memory.data(), 4, 0, 4, DType::float64)};
    for (const Data& each : empty) engine().submit(more_, {{each, Access::update}});
    const Data full = vector(memory.data(), 4);
    engine().submit(more_, {{full, Access::update}});
    engine().remove(empty);
    engine().remove(full);
  }
  EXPECT_EQ(memory[3], 10);
}

TEST_P(SharingTest, TheSameMemoryIsTheSameData) {
  std::array<double, 8> memory{};
  const Data first = vector(memory.data(), 8);
  for (int i = 0; i < 200; ++i) {
    const Data again = vector(memory.data(), 8);
    EXPECT_EQ(again, first);
    engine().submit(more_, {{again, Access::update}});
    if (i % 3 == 0) engine().remove(again);
  }
  wait();
  EXPECT_EQ(memory[7], 200);
  engine().remove(first);
  EXPECT_EQ(vector(memory.data(), 8), first) << "it is registered 134 times still";
}

TEST_P(SharingTest, SlicesShareOrderAndContent) {
  std::array<double, 100> memory{};
  const Data whole = vector(memory.data(), 100);
  const Data slice = vector(memory.data() + 10, 10);
  const Data odd = engine().data(memory.data() + 1, 1, 50, 2, DType::float64);
  double total = 0;
  const Data result = vector(&total, 1);
  for (int i = 0; i < 30; ++i) {
    engine().submit(more_, {{whole, Access::update}});
    engine().submit(more_, {{slice, Access::update}});
    engine().submit(more_, {{odd, Access::update}});
    engine().submit(sum_, {{slice, Access::read}, {result, Access::write}});
  }
  wait();
  EXPECT_EQ(total, 10 * 60 + 5 * 30);
  for (std::size_t i = 0; i < 100; ++i)
    EXPECT_EQ(memory[i], 30 + (i >= 10 && i < 20 ? 30 : 0) + (i % 2 == 1 ? 30 : 0)) << i;
}

TEST_P(SharingTest, AnAliasThatIsRemovedLeavesWhatItWrote) {
  std::array<double, 16> memory{};
  const Data whole = vector(memory.data(), 16);
  engine().submit(more_, {{whole, Access::update}});
  for (int i = 0; i < 10; ++i) {
    const Data half = vector(memory.data() + 8, 8);
    engine().submit(more_, {{half, Access::update}});
    engine().remove(half);
    engine().submit(more_, {{whole, Access::update}});
  }
  wait();
  EXPECT_EQ(memory[0], 11);
  EXPECT_EQ(memory[15], 21);
}

TEST_P(SharingTest, WaitForOneBringsItsAliasesHome) {
  std::array<double, 16> memory{};
  const Data whole = vector(memory.data(), 16, {.resident = true});
  const Data half = vector(memory.data() + 8, 8, {.resident = true});
  engine().submit(more_, {{half, Access::update}});
  engine().wait(whole, patience);
  EXPECT_EQ(memory[12], 1);
}

TEST_P(SharingTest, AWaitEndsInTimeWhileAnotherThreadRemovesAnAlias) {
  if (is_virtual(GetParam())) GTEST_SKIP() << "the virtual clock stands still while a body runs";
  std::array<double, 16> memory{};
  const Data whole = vector(memory.data(), 16), part = vector(memory.data(), 8);
  engine().submit(gate({Access::update}), {{part, Access::update}});
  std::atomic<bool> begins{false};
  std::thread remover([&] {
    begins = true;
    engine().remove(part);
  });
  while (!begins) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // it waits for the task by now
  EXPECT_NE(failure_of([&] { engine().wait(whole, 0.1); }).find("did not end in time"),
            std::string::npos);
  EXPECT_NE(failure_of([&] {
              const HeldRegion region{
                  {reinterpret_cast<std::uintptr_t>(memory.data()), 128, 1, 128}, Access::read};
              hold_regions(engine(), {&region, 1}, 0.1);
            }).find("did not end in time"),
            std::string::npos);
  open();
  remover.join();
  engine().wait(whole, patience);
}

TEST_P(SharingTest, AWaitForAnotherThreadsAccessEndsInTime) {
  std::array<double, 8> memory{};
  const Data data = vector(memory.data(), 8);
  std::atomic<bool> has_it{false}, may_end{false};
  std::thread host([&] {
    const HostAccess access = engine().on_host(data, Access::write, patience);
    has_it = true;
    for (int i = 0; i < 240'000 && !may_end; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  while (!has_it) std::this_thread::yield();
  const Future task = engine().submit(more_, {{data, Access::update}});
  const auto ends_late = [&](const std::function<void()>& wait_for) {
    EXPECT_NE(failure_of(wait_for).find("did not end in time"), std::string::npos);
  };
  ends_late([&] { engine().wait(task, 0.05); });
  ends_late([&] { engine().wait(data, 0.05); });
  ends_late([&] { engine().wait(0.05); });
  ends_late([&] { engine().on_host(data, Access::read, 0.05); });
  may_end = true;
  host.join();
  engine().wait(data, patience);
  EXPECT_EQ(memory[0], 1);
}

TEST_P(SharingTest, OperandsThatOverlapAreRefusedIfOneIsWritten) {
  std::array<double, 16> memory{};
  const Data whole = vector(memory.data(), 16);
  const Data half = vector(memory.data() + 8, 8);
  const std::string said = failure_of([&] {
    engine().submit(twice_, {{half, Access::read}, {whole, Access::write}});
  });
  EXPECT_NE(said.find("share memory"), std::string::npos) << said;
  EXPECT_NE(said.find("16 x 1 float64"), std::string::npos) << said;
  EXPECT_NE(said.find("8 x 1 float64"), std::string::npos) << said;
  Codelet& both = codelet("both", {Access::read, Access::read}, [](const Arguments&) {});
  engine().submit(both, {{half, Access::read}, {whole, Access::read}});
  wait();
}

TEST_P(SharingTest, WhatTheHostWritesBetweenWaitsIsRead) {
  std::array<double, 8> x{};
  std::array<double, 8> y{};
  const Data from = vector(x.data(), 8);
  const Data to = vector(y.data(), 8);
  for (int step = 0; step < 3; ++step) {
    x.fill(step);
    engine().submit(twice_, {{from, Access::read}, {to, Access::write}});
    if (step < 2)
      wait();
    else
      engine().wait(to, patience);
    EXPECT_EQ(y[3], 2 * step);
  }
  x.fill(10);
  engine().wait(from, patience);
  engine().submit(twice_, {{from, Access::read}, {to, Access::write}});
  engine().wait(to, patience);
  EXPECT_EQ(y[3], 20);
}

TEST_P(SharingTest, ResidentDataStayAndTheHostAsksForThem) {
  std::array<double, 8> x{};
  std::array<double, 8> y{};
  const Data from = vector(x.data(), 8, {.resident = true});
  const Data to = vector(y.data(), 8, {.resident = true});
  for (int step = 0; step < 5; ++step) {
    engine().submit(more_, {{from, Access::update}}, SubmitOptions{.device = 0});
    wait();
  }
  std::uint64_t copies = 0;
  for (const LinkCounters& link : engine().counters().links) copies += link.copies;
  if (has_devices()) {
    EXPECT_EQ(copies, 1 + 5) << "in once, home at each wait";
  }
  {
    const HostAccess access = engine().on_host(from, Access::update, patience);
    EXPECT_EQ(x[0], 5);
    x.fill(7);
  }
  engine().submit(twice_, {{from, Access::read}, {to, Access::write}}, SubmitOptions{.device = 0});
  {
    const HostAccess access = engine().on_host(to, Access::read, patience);
    EXPECT_EQ(y[0], 14);
  }
  {
    const HostAccess access = engine().on_host(from, Access::write, patience);
    x.fill(8);
  }
  engine().submit(twice_, {{from, Access::read}, {to, Access::write}}, SubmitOptions{.device = 0});
  wait();
  EXPECT_EQ(y[0], 16);
}

TEST_P(SharingTest, TasksWaitForTheHostAndOthersDoNot) {
  std::array<double, 8> x{};
  std::array<double, 8> y{};
  std::array<double, 8> z{};
  const Data from = vector(x.data(), 8);
  const Data to = vector(y.data(), 8);
  const Data other = vector(z.data(), 8);
  HostAccess access = engine().on_host(from, Access::write, patience);
  const Future follows = engine().submit(twice_, {{from, Access::read}, {to, Access::write}});
  const Future runs = engine().submit(more_, {{other, Access::update}});
  if (!is_virtual(GetParam())) {
    EXPECT_TRUE(access.is_awaited());
    EXPECT_NE(failure_of([&] { wait(); }).find("leave it before you wait"), std::string::npos);
  }
  x.fill(3);
  EXPECT_FALSE(engine().done(follows));
  const HostAccess again = engine().on_host(from, Access::read, patience);
  access.release();
  wait();
  EXPECT_TRUE(engine().done(runs));
  EXPECT_EQ(y[0], 6);
  EXPECT_EQ(z[0], 1);
}

TEST_P(SharingTest, AReaderOnTheHostIsBesideReaders) {
  std::array<double, 8> x{};
  std::array<double, 8> y{};
  const Data from = vector(x.data(), 8);
  const Data to = vector(y.data(), 8);
  HostAccess access = engine().on_host(from, Access::read, patience);
  engine().submit(twice_, {{from, Access::read}, {to, Access::write}});
  engine().wait(to, patience);
  EXPECT_NE(failure_of([&] {
              engine().on_host(from, Access::write, patience);
            }).find("can't write it before it has left"),
            std::string::npos);
  engine().submit(more_, {{from, Access::update}});
  EXPECT_EQ(x[0], 0);
  access.release();
  wait();
  EXPECT_EQ(x[0], 1);
}

TEST_P(SharingTest, TheHostHoldsAliasesToo) {
  std::array<double, 16> memory{};
  const Data whole = vector(memory.data(), 16, {.resident = true});
  const Data half = vector(memory.data() + 8, 8, {.resident = true});
  engine().submit(more_, {{whole, Access::update}});
  engine().submit(more_, {{half, Access::update}});
  {
    const HostAccess access = engine().on_host(whole, Access::update, patience);
    EXPECT_EQ(memory[0], 1);
    EXPECT_EQ(memory[8], 2);
    memory.fill(10);
  }
  engine().submit(more_, {{half, Access::update}});
  engine().submit(more_, {{whole, Access::update}});
  {
    const HostAccess access = engine().on_host(half, Access::write, patience);
    memory[8] = 0;
  }
  engine().submit(more_, {{whole, Access::update}});
  wait();
  EXPECT_EQ(memory[0], 12);
  EXPECT_EQ(memory[8], 1);
  EXPECT_EQ(memory[9], 13);
}

/// What a thread holds already it asks for again by a larger alias, whose other parts it has not.
TEST_P(SharingTest, AnAccessWithinAnotherHasAllThatItAsksFor) {
  std::array<double, 16> memory{};
  const Data whole = vector(memory.data(), 16, {.resident = true});
  const Data left = vector(memory.data(), 8, {.resident = true});
  const Data right = vector(memory.data() + 8, 8, {.resident = true});
  engine().submit(more_, {{left, Access::update}}, on_a_device());
  engine().submit(more_, {{right, Access::update}}, on_a_device());
  {
    const HostAccess outer = engine().on_host(left, Access::update, patience);
    const HostAccess all = engine().on_host(whole, Access::update, patience);
    EXPECT_EQ(memory[0], 1);
    EXPECT_EQ(memory[8], 1) << "the task's result is on its device";
    memory.fill(10);
  }
  engine().submit(more_, {{right, Access::update}}, on_a_device());
  engine().wait(right, patience);
  EXPECT_EQ(memory[8], 11) << "the host wrote 10";
}

/// A task that waits for the access makes its end tell the devices what the host may have written.
TEST_P(SharingTest, WhatAnAccessDoesNotTouchStaysOnItsDevice) {
  std::array<double, 16> memory{};
  const Data whole = vector(memory.data(), 16, {.resident = true});
  const Data left = vector(memory.data(), 8, {.resident = true});
  const Data right = vector(memory.data() + 8, 8, {.resident = true});
  engine().wait(engine().submit(more_, {{left, Access::update}}, on_a_device()), patience);
  {
    const HostAccess access = engine().on_host(right, Access::update, patience);
    engine().submit(more_, {{right, Access::update}}, on_a_device());
    memory[8] = 5;
  }
  engine().wait(whole, patience);
  EXPECT_EQ(memory[0], 1) << "the task's result was on its device all the while";
  EXPECT_EQ(memory[8], 6);
}

/// A device that fetched ahead would read what the host writes at that time.
TEST_P(SharingTest, NothingIsFetchedAheadOfWhatTheHostWrites) {
  std::array<double, 8> memory{};
  std::array<double, 8> others{};
  const Data held = vector(memory.data(), 8, {.resident = true});
  const Data other = vector(others.data(), 8, {.resident = true});
  const SpaceId there = engine().machine().devices[0].space;
  for (const Access mode : {Access::read, Access::write, Access::update}) {
    {
      const HostAccess access = engine().on_host(held, mode, patience);
      engine().submit(more_, {{held, Access::update}}, on_a_device());
      // The device looks ahead while it runs another task.
      engine().wait(engine().submit(more_, {{other, Access::update}}, on_a_device()), patience);
      const bool is_ahead = there != host_space && engine().valid({&held, 1}, there).front();
      EXPECT_TRUE(mode == Access::read || !is_ahead) << name(mode);
      if (mode != Access::read) memory[0] = 5;
    }
    engine().wait(held, patience);
    EXPECT_EQ(memory[0], mode == Access::read ? 1 : 6) << name(mode);
  }
}

/// Disjoint parts have the whole in common, which is registered, too.
TEST_P(SharingTest, AThreadHoldsTwoPartsOfOneWhole) {
  std::array<double, 16> memory{};
  const Data whole = vector(memory.data(), 16, {.resident = true});
  const Data left = vector(memory.data(), 8, {.resident = true});
  const Data right = vector(memory.data() + 8, 8, {.resident = true});
  engine().submit(more_, {{whole, Access::update}}, on_a_device());
  {
    const HostAccess first = engine().on_host(left, Access::update, patience);
    const HostAccess second = engine().on_host(right, Access::update, patience);
    EXPECT_EQ(memory[15], 1);
    memory.fill(3);
  }
  engine().submit(more_, {{whole, Access::update}}, on_a_device());
  engine().wait(whole, patience);
  EXPECT_EQ(memory[0], 4);
  EXPECT_EQ(memory[15], 4);
}

/// The access waits for a slow copy, while another thread submits a task that follows it.
TEST_P(SharingTest, WhatIsSubmittedWhileTheHostWaitsForACopyIsNotTakenToBeHome) {
  make_slow();
  std::vector<double> x(100'000);
  const Data data = vector(x.data(), 100'000, {.resident = true});
  engine().wait(engine().submit(more_, {{data, Access::update}}, on_a_device()), patience);
  Future follows;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    follows = engine().submit(more_, {{data, Access::update}}, on_a_device());
  });
  { const HostAccess access = engine().on_host(data, Access::update, patience); }
  other.join();
  engine().wait(follows, patience);
  const HostAccess access = engine().on_host(data, Access::read, patience);
  EXPECT_EQ(x[0], 2);
}

/// As a wait in slices tries again. The first try entered the order of tasks, and ended there.
TEST_P(SharingTest, AnAccessThatCameTooLateIsAskedForAgain) {
  if (!has_devices()) GTEST_SKIP() << "nothing has to be copied";
  make_slow();
  std::vector<double> x(100'000);
  const Data data = vector(x.data(), 100'000, {.resident = true});
  double tries = 0;
  // In time where this thread stands still for as long as the copy takes.
  for (bool is_late = false; !is_late && tries < 50; ++tries) {
    engine().wait(engine().submit(more_, {{data, Access::update}}, on_a_device()), patience);
    is_late = failure_of([&] {
                engine().on_host(data, Access::update, is_virtual(GetParam()) ? 1e-9 : 0.01);
              }) != "nothing was thrown";
  }
  EXPECT_LT(tries, 50);
  {
    const HostAccess access = engine().on_host(data, Access::update, patience);
    EXPECT_EQ(x[0], tries);
    x[0] = 7;
  }
  engine().submit(more_, {{data, Access::update}}, on_a_device());
  const HostAccess access = engine().on_host(data, Access::read, patience);
  EXPECT_EQ(x[0], 8) << "the device had an old replica";
}

/// Its end must not say that the host wrote what never came home.
TEST_P(SharingTest, AnAccessThatCameTooLateLosesNothing) {
  make_slow();
  std::vector<double> x(100'000);
  const Data data = vector(x.data(), 100'000, {.resident = true});
  engine().wait(engine().submit(more_, {{data, Access::update}}, on_a_device()), patience);
  std::thread other([&] {
    try {
      engine().on_host(data, Access::update, 0.3).release();
    } catch (const Error&) {  // the copy takes longer, but under the virtual clock
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  engine().submit(more_, {{data, Access::update}}, on_a_device());
  other.join();
  const HostAccess access = engine().on_host(data, Access::read, patience);
  EXPECT_EQ(x[0], 2);
}

/// As many as a history keeps, and more: it forgets those that have ended.
TEST_P(SharingTest, DevicesForgetWhatManyReadersFetchedBeforeTheHostWrites) {
  for (int readers = 0; readers < 3 * History::inline_readers; ++readers) {
    std::array<double, 8> x{};
    std::vector<double> y(3 * History::inline_readers * 8);
    const Data from = vector(x.data(), 8, {.resident = true});
    { const HostAccess access = engine().on_host(from, Access::update, patience); }
    for (int i = 0; i < readers; ++i)
      engine().submit(twice_, {{from, Access::read}, {vector(y.data() + 8 * i, 8), Access::write}},
                      SubmitOptions{.device = 0});
    wait();
    { const HostAccess access = engine().on_host(from, Access::read, patience); }
    {
      const HostAccess access = engine().on_host(from, Access::update, patience);
      x.fill(7);
    }
    engine().submit(more_, {{from, Access::update}}, SubmitOptions{.device = 0});
    { const HostAccess access = engine().on_host(from, Access::read, patience); }
    EXPECT_EQ(x[0], 8) << "behind " << readers << " readers";
    engine().remove(from);
  }
}

TEST_P(SharingTest, WhatTheHostOverwritesIsSoundAgain) {
  std::array<double, 8> x{};
  const Data data = vector(x.data(), 8);
  Codelet& fails = codelet("fails", {Access::update},
                           [](const Arguments&) { throw std::runtime_error("cold"); });
  engine().submit(fails, {{data, Access::update}});
  EXPECT_THROW(wait(), Error);
  EXPECT_THROW(engine().on_host(data, Access::read, patience), Error);
  {
    const HostAccess access = engine().on_host(data, Access::write, patience);
    x.fill(4);
  }
  engine().submit(more_, {{data, Access::update}});
  wait();
  EXPECT_EQ(x[0], 5);
}

/// What says that content is lost doesn't make it sound.
TEST_P(SharingTest, AnAccessThatIsRefusedLeavesLostContentLost) {
  std::array<double, 8> x{};
  const Data data = vector(x.data(), 8);
  Codelet& fails = codelet("fails", {Access::update},
                           [](const Arguments&) { throw std::runtime_error("cold"); });
  engine().submit(fails, {{data, Access::update}});
  EXPECT_THROW(wait(), Error);
  EXPECT_THROW(engine().on_host(data, Access::update, patience), Error);
  EXPECT_THROW(engine().wait(engine().submit(more_, {{data, Access::update}}), patience), Error);
}

}  // namespace
}  // namespace quadriga
