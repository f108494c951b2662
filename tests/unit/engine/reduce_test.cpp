// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/reduce_test.cpp: partial results of mode reduce: made, combined in time, lost
// with an error, and gone with their data.
#include <quadriga/engine.h>

#include <numeric>

#include "device/factory.h"
#include "unit/engine/engines.h"

namespace quadriga {
namespace {

class ReduceTest : public EngineTest {
 protected:
  /// Adds its first operand, a number in every element, to the second.
  Codelet& adder() {
    Codelet& add = codelet("add", {Access::read, Access::reduce}, [](const Arguments& a) {
      each(a, 1, [&](double& value, std::size_t) { value += first(a, 0); });
    });
    add.init = &zero();
    add.combine = &plus();
    return add;
  }
  Codelet& zero() {
    return codelet("zero", {Access::write}, [this](const Arguments& a) {
      ++zeroed;
      each(a, 0, [](double& value, std::size_t) { value = 0; });
    });
  }
  Codelet& plus() {
    return codelet("plus", {Access::update, Access::read}, [this](const Arguments& a) {
      ++combined;
      each(a, 0, [&](double& value, std::size_t i) { value += a.operands[1].as<double>()[i]; });
    });
  }
  template <class Visit>
  static void each(const Arguments& a, std::size_t operand, Visit&& visit) {
    for (std::size_t i = 0; i < 8; ++i) visit(a.operands[operand].as<double>()[i], i);
  }
  /// Some number on some device.
  SubmitOptions on(int device) const {
    SubmitOptions options;
    if (GetParam() != Where::host) options.device = static_cast<DeviceId>(device % 3);
    return options;
  }
  bool has_devices() const { return GetParam() != Where::host; }
  /// The error that a wait ends in; `internal` if it ends well.
  Errc wait_code(const std::function<void()>& wait_for) {
    try {
      wait_for();
    } catch (const Error& error) {
      return error.code();
    }
    return Errc::internal;
  }

  std::atomic<int> zeroed{0};
  std::atomic<int> combined{0};
};

INSTANTIATE_TEST_SUITE_P(Engine, ReduceTest, every_engine(), where_name);

TEST_P(ReduceTest, SumsOfAllDevicesComeTogether) {
  const Data sum = tile(1000), one = tile(1), seen = tile();
  Codelet& add = adder();
  for (int i = 0; i < 30; ++i)
    engine().submit(add, {{one, Access::read}, {sum, Access::reduce}}, on(i));
  engine().submit(copying(), {{sum, Access::read}, {seen, Access::write}});
  wait();
  EXPECT_EQ(home(0), 1030);
  EXPECT_EQ(home(2), 1030);
  if (!has_devices()) return;
  EXPECT_EQ(zeroed, 2);  // the cores add in place
  EXPECT_EQ(combined, 2);
}

TEST_P(ReduceTest, EveryKindOfEndCombines) {
  const Data sum = tile(), one = tile(1);
  Codelet& add = adder();
  Codelet& twice = codelet(Access::update, [](const Arguments& a) {
    each(a, 0, [](double& value, std::size_t) { value *= 2; });
  });
  const auto some = [&] {
    for (int i = 0; i < 6; ++i)
      engine().submit(add, {{one, Access::read}, {sum, Access::reduce}}, on(i));
  };
  some();
  engine().wait(sum, patience);
  EXPECT_EQ(home(0), 6);
  some();
  engine().submit(twice, {{sum, Access::update}});
  some();
  wait();
  EXPECT_EQ(home(0), 30);
  some();
  engine().final(sum);
  wait();
  EXPECT_EQ(home(0), 36);
  const Data other = tile(5);
  for (int i = 0; i < 6; ++i)
    engine().submit(add, {{one, Access::read}, {other, Access::reduce}}, on(i));
  engine().remove(other);
  EXPECT_EQ(home(2), 11);
}

TEST_P(ReduceTest, DevicesAddAtTheSameTime) {
  if (!has_devices()) GTEST_SKIP() << "cores add in place";
  const Data sum = tile(), one = tile(1);
  std::atomic<int> inside{0};
  const bool stands_still = is_virtual(GetParam());
  Codelet& add = adder();
  Body& body = GetParam() == Where::virtual_gpus ? add.cuda : add.cpu;
  body = [&inside, stands_still](const Arguments& a) {
    ++inside;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(240);
    while (!stands_still && inside < 2 && std::chrono::steady_clock::now() < end)
      std::this_thread::yield();
    EXPECT_TRUE(stands_still || inside >= 2);
    first(a, 1) += 1;
  };
  const Nanoseconds before = engine().now();
  const int tasks = stands_still ? 40 : 2;
  for (int i = 0; i < tasks; ++i)
    engine().submit(add, {{one, Access::read}, {sum, Access::reduce}}, on(i % 2));
  wait();
  EXPECT_EQ(home(0), tasks);
  if (stands_still) {
    EXPECT_LT(engine().now() - before, 30 * 10'000);  // a task takes 10 us
  }
}

TEST_P(ReduceTest, OtherOperationsAreAnotherGroup) {
  const Data value = tile(), one = tile(1), ten = tile(10);
  Codelet& add = adder();
  Codelet& largest = codelet("largest", {Access::read, Access::reduce}, [](const Arguments& a) {
    each(a, 1, [&](double& x, std::size_t) { x = std::max(x, first(a, 0)); });
  });
  largest.init = &codelet("least", {Access::write}, [](const Arguments& a) {
    each(a, 0, [](double& x, std::size_t) { x = -1e300; });
  });
  largest.combine = &codelet("larger", {Access::update, Access::read}, [](const Arguments& a) {
    each(a, 0, [&](double& x, std::size_t i) { x = std::max(x, a.operands[1].as<double>()[i]); });
  });
  for (int i = 0; i < 4; ++i)
    engine().submit(add, {{one, Access::read}, {value, Access::reduce}}, on(i));
  for (int i = 0; i < 4; ++i)
    engine().submit(largest, {{ten, Access::read}, {value, Access::reduce}}, on(i));
  for (int i = 0; i < 4; ++i)
    engine().submit(add, {{one, Access::read}, {value, Access::reduce}}, on(i));
  wait();
  EXPECT_EQ(home(0), 14);
}

TEST_P(ReduceTest, InPlaceAndApartGoTogether) {
  const Data sum = tile(), one = tile(1);
  Codelet& add = adder();
  Codelet& in_place = codelet("in place", {Access::read, Access::reduce}, add.cpu);
  for (int i = 0; i < 20; ++i)
    engine().submit(i % 3 ? add : in_place, {{one, Access::read}, {sum, Access::reduce}}, on(i));
  wait();
  EXPECT_EQ(home(0), 20);
}

TEST_P(ReduceTest, AFailedMemberPoisonsTheTargetUntilItIsWritten) {
  const Data sum = tile(7), one = tile(1), seen = tile();
  Codelet& add = adder();
  Codelet& broken = codelet("broken", {Access::read, Access::reduce},
                            [](const Arguments&) { throw std::runtime_error("no"); });
  broken.init = add.init;
  broken.combine = add.combine;
  for (int i = 0; i < 6; ++i)
    engine().submit(i == 3 ? broken : add, {{one, Access::read}, {sum, Access::reduce}}, on(i));
  const Future read = engine().submit(copying(), {{sum, Access::read}, {seen, Access::write}});
  EXPECT_EQ(wait_code([&] { wait(); }), Errc::task_failed);
  EXPECT_EQ(wait_code([&] { engine().wait(read, patience); }), Errc::cancelled);
  Codelet& five = codelet(Access::write, [](const Arguments& a) {
    each(a, 0, [](double& value, std::size_t) { value = 5; });
  });
  engine().submit(five, {{sum, Access::write}});
  for (int i = 0; i < 6; ++i)
    engine().submit(add, {{one, Access::read}, {sum, Access::reduce}}, on(i));
  wait();
  EXPECT_EQ(home(0), 11);
}

TEST_P(ReduceTest, ALostPartialResultIsReported) {
  if (!has_devices()) GTEST_SKIP() << "there is no device to lose";
  make([](WrappedOptions& options) {
    options.wrap_backend = [](std::unique_ptr<Backend> backend) {
      FaultPlan plan;
      plan.losses = {{1, 6}};
      return make_faulty_backend(std::move(backend), plan);
    };
  });
  const Data sum = tile(7), one = tile(1), other = tile();
  Codelet& add = adder();
  for (int i = 0; i < 6; ++i)
    engine().submit(add, {{one, Access::read}, {sum, Access::reduce}}, on(i % 2));
  // The device is lost after what it did has ended well.
  for (int i = 0; i < 20; ++i)
    engine().submit(copying(), {{one, Access::read}, {other, Access::write}}, on(1));
  // A partial result that left the device in time is combined all the same, and copies run again
  // elsewhere; by the virtual clock it doesn't.
  const Errc said = wait_code([&] { wait(); });
  EXPECT_TRUE(said == Errc::device_lost ||
              (said == Errc::internal && GetParam() == Where::emulated));
  if (wait_code([&] { engine().wait(sum, patience); }) == Errc::internal) {
    EXPECT_EQ(home(0), 13);
  }
}

TEST_P(ReduceTest, ChildrenReduceForTheirParent) {
  const Data sum = tile(3), one = tile(1), seen = tile();
  Codelet& add = adder();
  Codelet& divided = codelet("divided", {Access::read, Access::update}, [&](const Arguments&) {
    for (int i = 0; i < 9; ++i)
      engine().submit(add, {{one, Access::read}, {sum, Access::reduce}}, on(i));
  });
  divided.submits = true;
  for (int i = 0; i < 4; ++i)
    engine().submit(divided, {{one, Access::read}, {sum, Access::update}});
  engine().submit(copying(), {{sum, Access::read}, {seen, Access::write}});
  wait();
  EXPECT_EQ(home(2), 39);
}

TEST_P(ReduceTest, ParentsThatReduceLeaveTheSumToTheirChildren) {
  const Data sum = tile(3), one = tile(1);
  Codelet& add = adder();
  Codelet& divided = codelet("divided", {Access::read, Access::reduce}, [&](const Arguments&) {
    for (int i = 0; i < 5; ++i)
      engine().submit(add, {{one, Access::read}, {sum, Access::reduce}}, on(i));
  });
  divided.submits = true;
  divided.init = add.init;
  divided.combine = add.combine;
  for (int i = 0; i < 12; ++i) {
    engine().submit(i % 3 ? divided : add, {{one, Access::read}, {sum, Access::reduce}},
                    i % 3 ? SubmitOptions{} : on(i));
  }
  wait();
  EXPECT_EQ(home(0), 3 + 4 + 8 * 5);
}

TEST_P(ReduceTest, PartialResultsGoWithTheirData) {
  make([](EngineOptions& options) {
    if (!options.machine) options.machine = Machine::parse(options.devices);
    for (Device& device : options.machine->devices)
      if (device.memory_bytes) device.memory_bytes = 4096;
  });
  const Data one = tile(1);
  Codelet& add = adder();
  for (int round = 0; round < 200; ++round) {
    const Data sum = engine().temporary(8, 1, DType::float64);
    Codelet& begin = codelet(Access::write, [](const Arguments& a) {
      each(a, 0, [](double& value, std::size_t) { value = 0; });
    });
    engine().submit(begin, {{sum, Access::write}});
    for (int i = 0; i < 4; ++i)
      engine().submit(add, {{one, Access::read}, {sum, Access::reduce}}, on(i));
    const Data seen = tile();
    engine().submit(copying(), {{sum, Access::read}, {seen, Access::write}});
    engine().remove(sum);
    engine().wait(seen, patience);
    EXPECT_EQ(home(1 + static_cast<std::size_t>(round)), 4);
  }
  wait();
}

TEST_P(ReduceTest, CountersAndTraceAgree) {
  make([](EngineOptions& options) { options.trace = true; });
  const Data sum = tile(), one = tile(1);
  Codelet& add = adder();
  for (int i = 0; i < 10; ++i)
    engine().submit(add, {{one, Access::read}, {sum, Access::reduce}}, on(0));
  wait();
  const Counters counters = engine().counters();
  std::uint64_t tasks = 0;
  for (const DeviceCounters& device : counters.devices) tasks += device.tasks;
  // Both devices' partial results are combined, one of them without need.
  EXPECT_EQ(counters.submitted, has_devices() ? 12u : 10u);
  EXPECT_EQ(counters.ended, counters.submitted);
  EXPECT_EQ(tasks, counters.submitted);
  EXPECT_EQ(combined, has_devices() ? 1 : 0);
}

TEST_P(ReduceTest, HalfADefinitionIsRefused) {
  const Data sum = tile(), one = tile(1);
  const auto refused = [&](const Codelet& add) {
    return wait_code([&] {
             engine().submit(add, {{one, Access::read}, {sum, Access::reduce}});
           }) == Errc::invalid_argument;
  };
  Codelet& add = adder();
  Codelet half = add;
  half.init = nullptr;
  EXPECT_TRUE(refused(half));
  Codelet turned = add;
  std::swap(turned.init, turned.combine);
  EXPECT_TRUE(refused(turned));
}

}  // namespace
}  // namespace quadriga
