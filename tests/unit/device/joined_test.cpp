// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/device/joined_test.cpp: devices of several kinds in one backend, kinds that nobody
// knew included: a line in the table of kinds is all that they need.
#include "device/joined/joined_backend.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "device/alarm.h"
#include "device/factory.h"
#include "device/operation.h"

namespace quadriga {
namespace {

constexpr auto fourth = static_cast<DeviceKind>(3);
constexpr auto fifth = static_cast<DeviceKind>(4);

// A device that runs its kernels when it is asked what has ended, and tells nobody. It refuses
// kernels named "refused" when they are queued.
class PolledBackend final : public Backend {
 public:
  explicit PolledBackend(Machine machine) : machine_(std::move(machine)) {}
  std::byte* allocate(DeviceId, std::size_t) override { return nullptr; }
  void deallocate(DeviceId, std::byte*) noexcept override {}
  StreamId create_stream(DeviceId, StreamKind) override {
    issued_.push_back(0);
    return static_cast<StreamId>(issued_.size() - 1);
  }
  Event copy(StreamId, const Copy& copy) override {
    check_copy(machine_, copy, nullptr);
    return {};
  }
  Event launch(StreamId stream, const Launch& launch) override {
    if (launch.name == "refused" && launch.cost.volume > 0) fail(Errc::unavailable, "no room");
    Event event{stream, 0};
    {
      const std::lock_guard lock(mutex_);
      event.ticket = ++issued_[stream];
      queue_.push_back({event, launch});
    }
    alarm_.ring();
    return event;
  }
  void wait(StreamId, Event) override {}  // All run in the order of calls.
  std::size_t next_completion(std::span<Completion> out, Nanoseconds deadline) override {
    if (run_one(out.front())) return 1;
    alarm_.sleep_until(deadline);
    return run_one(out.front()) ? 1 : 0;
  }
  void wake() noexcept override { alarm_.ring(); }
  Nanoseconds now() const noexcept override { return alarm_.now(); }
  bool is_virtual() const noexcept override { return false; }
  bool pin(std::byte*, std::size_t) override { return false; }
  void unpin(std::byte*, std::size_t) noexcept override {}
  const Machine& machine() const noexcept override { return machine_; }

 private:
  struct Queued {
    Event event;
    Launch launch;
  };
  bool run_one(Completion& done) {
    Queued next;
    {
      const std::lock_guard lock(mutex_);
      if (queue_.empty()) return false;
      next = queue_.front();
      queue_.pop_front();
    }
    done = {next.event, now(), 0, nullptr};
    try {
      (*next.launch.kernel)(next.launch.arguments);
    } catch (...) {
      done.error = std::current_exception();
    }
    done.end = now();
    return true;
  }

  const Machine machine_;
  Alarm alarm_;
  std::mutex mutex_;
  std::vector<std::uint64_t> issued_;  // By stream; guarded by mutex_.
  std::deque<Queued> queue_;           // Guarded by mutex_.
};

// The table with two more lines.
std::vector<KindOfDevice> more_kinds() {
  std::vector<KindOfDevice> kinds = kinds_of_devices();
  for (const DeviceKind kind : {fourth, fifth})
    kinds.push_back({kind, [](const Machine& machine, const BackendOptions&) {
                       return std::make_unique<PolledBackend>(machine);
                     }});
  return kinds;
}

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
  backend_ = make_backend(machine, {}, more_kinds());
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
  machine.devices.push_back(device_of(fourth));
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
  EXPECT_THROW(make_backend(machine, {}, more_kinds()), Error);
  machine.routes.pop_back();
  machine.routes.push_back({2, 0, {0}});
  EXPECT_NO_THROW(make_backend(machine, {}, more_kinds()));
}

// While it was parked, nobody could be told.
TEST_F(JoinedTest, WhatAPartRefusesIsDeliveredInItsOrder) {
  Machine machine = Machine::parse("cpu:1");
  machine.devices.push_back(device_of(fourth));
  backend_ = make_backend(machine, {}, more_kinds());
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
  backend_ = make_backend(machine, {}, more_kinds());
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
    EXPECT_EQ(backend_->next_completion({&done, 1}, begin + 20'000'000'000), 1u);
    EXPECT_LT(backend_->now() - begin, 10'000'000'000) << "device " << round % 3;
  }
  backend_->wake();
  EXPECT_TRUE(collect(1).empty());
}

}  // namespace
}  // namespace quadriga
