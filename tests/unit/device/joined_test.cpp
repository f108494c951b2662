// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/device/joined_test.cpp: devices of several kinds in one backend, kinds that nobody
// knew included: a row in the table of kinds is all that they need.
#include "device/joined/joined_backend.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <future>
#include <thread>
#include <vector>

#include "device/factory.h"
#include "device/kinds.h"
#include "polled_backend.h"

namespace quadriga {
namespace {

/// A row of the table that a test adds, once a program.
DeviceKind added(const char* name) {
  const KindOfDevice* const known = find_kind(name);
  return known ? known->kind
               : add_kind({.name = name, .make = [](const Machine& machine, const BackendOptions&) {
                             return std::make_unique<PolledBackend>(machine);
                           }});
}

const DeviceKind fourth = added("fourth");
const DeviceKind fifth = added("fifth");
constexpr auto nobodys = static_cast<DeviceKind>(200);

Device device_of(DeviceKind kind) {
  Device device;
  device.kind = kind;
  device.name = "another";
  return device;
}

class JoinedTest : public testing::Test {
 protected:
  Event launch(StreamId stream, Kernel kernel, std::string_view name = "step", double volume = 0) {
    Launch launch;
    launch.kernel = &kernels_.emplace_back(std::move(kernel));
    launch.name = name;
    launch.cost.volume = volume;
    return backend_->launch(stream, launch);
  }
  std::vector<Completion> collect(std::size_t count) {
    std::vector<Completion> all;
    while (all.size() < count) {
      std::array<Completion, 4> some;
      const std::size_t got = backend_->next_completion(some, backend_->now() + 20'000'000'000);
      if (got == 0) break;
      all.insert(all.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(got));
    }
    return all;
  }
  StreamId compute(DeviceId device) { return backend_->create_stream(device, StreamKind::compute); }

  std::deque<Kernel> kernels_;
  std::unique_ptr<Backend> backend_;
};

// A chain through devices of five kinds, by turns.
TEST_F(JoinedTest, KindsThatNobodyKnewTakePart) {
  Machine machine = Machine::parse("emulated:2;cpu:1");
  machine.devices.push_back(device_of(fourth));
  machine.devices.push_back(device_of(fifth));
  backend_ = make_backend(machine);
  std::vector<StreamId> streams;
  for (DeviceId id = 0; id < machine.devices.size(); ++id) streams.push_back(compute(id));
  std::atomic<int> reached{0};
  std::atomic<int> early{0};
  Event last;
  constexpr int steps = 200;
  for (int step = 0; step < steps; ++step) {
    const StreamId stream = streams[static_cast<std::size_t>(step * 3) % streams.size()];
    backend_->wait(stream, last);
    last = launch(stream, [&, step](const Arguments&) { early += reached++ != step; });
  }
  Nanoseconds before = 0;
  const std::vector<Completion> done = collect(steps);
  ASSERT_EQ(done.size(), static_cast<std::size_t>(steps));
  for (const Completion& each : done) {
    EXPECT_GE(each.begin, before);
    EXPECT_GE(each.end, each.begin);
    before = each.end;
  }
  EXPECT_EQ(early, 0);
  EXPECT_EQ(done.back().event, last);
}

TEST_F(JoinedTest, AKindThatNothingDrivesIsRefused) {
  Machine machine = Machine::parse("cpu:1");
  machine.devices.push_back(device_of(nobodys));
  try {
    make_backend(machine);
    FAIL() << "something drives it";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::unavailable);
    EXPECT_NE(std::string(error.what()).find("another"), std::string::npos) << error.what();
  }
}

TEST_F(JoinedTest, RoutesBetweenKindsAreRefused) {
  Machine machine = Machine::parse("emulated:1");
  Device device = device_of(fourth);
  device.space = 2;
  machine.devices.push_back(device);
  machine.routes.push_back({1, 2, {0}});
  EXPECT_THROW(make_backend(machine), Error);
  machine.routes.pop_back();
  machine.routes.push_back({2, 0, {0}});
  EXPECT_NO_THROW(make_backend(machine));
}

// What follows it in another part isn't queued there before.
TEST_F(JoinedTest, AKernelOfAnotherPartIsWaitedForToItsEnd) {
  Machine machine = Machine::parse("cpu:1");
  machine.devices.push_back(device_of(fourth));
  backend_ = make_backend(machine);
  const StreamId other = compute(1);
  std::promise<void> gate;
  const Event first =
      launch(compute(0), [opened = gate.get_future().share()](const Arguments&) { opened.wait(); });
  backend_->wait(other, first);
  const Event second = launch(other, [](const Arguments&) {});
  std::array<Completion, 4> some;
  const std::size_t early = backend_->next_completion(some, 0);
  gate.set_value();
  ASSERT_EQ(early, 0u);
  const std::vector<Completion> done = collect(2);
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].event, first);
  EXPECT_EQ(done[1].event, second);
}

// While it was parked, nobody could be told.
TEST_F(JoinedTest, WhatAPartRefusesIsDeliveredInItsOrder) {
  Machine machine = Machine::parse("cpu:1");
  machine.devices.push_back(device_of(fourth));
  backend_ = make_backend(machine);
  const StreamId other = compute(1);
  const Event slow = launch(compute(0), [](const Arguments&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  backend_->wait(other, slow);
  launch(other, [](const Arguments&) {});
  const Event refused = launch(
      other, [](const Arguments&) {}, "refused", 1);
  launch(other, [](const Arguments&) {});
  const std::vector<Completion> done = collect(4);
  ASSERT_EQ(done.size(), 4u);
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(done[i].event, (Event{other, i}));
    EXPECT_EQ(done[i].error != nullptr, done[i].event == refused);
  }
}

// Each part numbers its own spaces, from 1.
TEST_F(JoinedTest, SpacesAreThoseOfTheirParts) {
  Machine machine = Machine::parse("emulated:2");
  std::swap(machine.devices[0].space, machine.devices[1].space);
  machine.devices.insert(machine.devices.begin(), Machine::host().devices.front());
  backend_ = make_backend(machine);
  std::byte* const block = backend_->allocate(2, 64);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(backend_->holder(block), 2);
  EXPECT_EQ(backend_->holder(&machine), no_device);
  std::array<std::byte, 64> source;
  std::array<std::byte, 64> target{};
  source.fill(std::byte{7});
  const SpaceId space = machine.devices[2].space;
  const StreamId stream = backend_->create_stream(2, StreamKind::copy_in);
  backend_->copy(stream, {host_space, space, source.data(), block, 64});
  backend_->copy(stream, {space, host_space, block, target.data(), 64});
  EXPECT_EQ(collect(2).size(), 2u);
  EXPECT_EQ(source, target);
  EXPECT_THROW(backend_->copy(compute(0), {host_space, space, source.data(), block, 64}), Error);
}

// An end of one part wakes the driver that sleeps in another one.
TEST_F(JoinedTest, WhoSleepsIsWokenByEveryPart) {
  Machine machine = Machine::parse("emulated:1;cpu:1");
  machine.devices.push_back(device_of(fourth));
  backend_ = make_backend(machine);
  std::array<StreamId, 3> streams{};
  for (DeviceId id = 0; id < 3; ++id) streams[id] = compute(id);
  for (int round = 0; round < 30; ++round) {
    const StreamId stream = streams[static_cast<std::size_t>(round) % 3];
    std::jthread issuer([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      launch(stream, [](const Arguments&) {});
    });
    const Nanoseconds begin = backend_->now();
    Completion done;
    EXPECT_EQ(backend_->next_completion({&done, 1}, begin + 240'000'000'000), 1u);
    EXPECT_LT(backend_->now() - begin, 120'000'000'000) << "device " << round % 3;
  }
  backend_->wake();
  EXPECT_TRUE(collect(1).empty());
}

/// Tells of each look at it what the deadline was, and notes what wakes it.
class WatchedBackend final : public PolledBackend {
 public:
  using PolledBackend::PolledBackend;
  std::size_t next_completion(std::span<Completion> out, Nanoseconds deadline) override {
    if (on_look) on_look(deadline);
    return PolledBackend::next_completion(out, deadline);
  }
  void wake() noexcept override {
    PolledBackend::wake();
    woken = true;
  }
  static inline std::function<void(Nanoseconds deadline)> on_look;
  static inline std::atomic<bool> woken{false};
};

// A part that ends something just before the driver's last look at the one that it sleeps in: the
// look must not swallow the news.
TEST_F(JoinedTest, WhatEndsBeforeTheLastLookIsNotSleptThrough) {
  static const DeviceKind watched =
      add_kind({.name = "watched", .make = [](const Machine& machine, const BackendOptions&) {
                  return std::make_unique<WatchedBackend>(machine);
                }});
  Machine machine = Machine::parse("cpu:1");
  machine.devices.push_back(device_of(watched));
  backend_ = make_backend(machine);
  std::atomic<bool> may_end{false};
  launch(compute(0), [&](const Arguments&) { may_end.wait(false); });
  constexpr Nanoseconds a_second = 1'000'000'000;
  int looks = 0;
  WatchedBackend::on_look = [&](Nanoseconds deadline) {
    if (++looks != 2) return;
    WatchedBackend::woken = false;
    may_end = true;
    may_end.notify_all();
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(240);
    while (deadline < a_second && !WatchedBackend::woken &&
           std::chrono::steady_clock::now() < patience)
      std::this_thread::yield();
  };
  const Nanoseconds begin = backend_->now();
  EXPECT_EQ(collect(1).size(), 1u);
  EXPECT_LT(backend_->now() - begin, 120'000'000'000);
  EXPECT_GE(looks, 2);
  WatchedBackend::on_look = nullptr;
}

}  // namespace
}  // namespace quadriga
