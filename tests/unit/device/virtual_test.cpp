// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/device/virtual_test.cpp: the virtual clock to the nanosecond, and protected memory.
#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <algorithm>
#include <array>
#include <memory>
#include <tuple>

#include "base/random.h"
#include "device/factory.h"

namespace quadriga {
namespace {

constexpr std::size_t kilobytes = 1000;

// Two devices, host links of 1 byte a nanosecond that both share, kernels "k" of 1000 ns at
// order 10.
Machine two_devices() {
  Machine machine;
  machine.name = "two";
  for (int i = 0; i < 2; ++i) {
    Device device;
    device.name = i == 0 ? "gpu0" : "gpu1";
    device.kind = DeviceKind::emulated;
    device.space = static_cast<SpaceId>(i + 1);
    device.memory_bytes = 1 << 20;
    device.compute_streams = 2;
    device.copy_engines = 5;
    device.rates = "gpu";
    machine.devices.push_back(device);
  }
  machine.links = {{"down", 1e9, 0}, {"up", 1e9, 0}};
  machine.routes = {{0, 1, {0}}, {0, 2, {0}}, {1, 0, {1}}, {2, 0, {1}}, {1, 2, {0, 1}}};
  machine.kernels["k"]["gpu"] = {{10, 1e-6}};
  return machine;
}

const VirtualOptions timing_only{.compute = false};

struct Fixture {
  explicit Fixture(Machine machine = two_devices(), VirtualOptions options = timing_only)
      : backend(make_virtual_backend(std::move(machine), options)) {}

  StreamId stream(DeviceId device, StreamKind kind) { return backend->create_stream(device, kind); }
  Event copy(StreamId on, SpaceId from, SpaceId to, std::size_t bytes) {
    static std::byte place;
    return backend->copy(on, {from, to, &place, &place, bytes});
  }
  // Runs as far apart at both ends.
  Event copy_runs(StreamId on, SpaceId from, SpaceId to, std::size_t run, std::size_t count,
                  std::size_t pitch) {
    static std::byte place;
    return backend->copy(on, {from, to, &place, &place, run, count, pitch, pitch});
  }
  Event launch(StreamId on, double volume = 1000) {
    Launch launch;
    launch.name = "test";
    launch.cost = {"k", 10, volume};
    return backend->launch(on, launch);
  }
  Completion next() {
    Completion completion;
    EXPECT_EQ(backend->next_completion({&completion, 1}, never), 1u);
    return completion;
  }
  std::vector<Nanoseconds> ends(int count) {
    std::vector<Nanoseconds> times;
    for (int i = 0; i < count; ++i) times.push_back(next().end);
    return times;
  }
  using Times = std::vector<Nanoseconds>;

  std::unique_ptr<Backend> backend;
};

TEST(Virtual, CopyTakesLatencyThenFlows) {
  Machine machine = two_devices();
  machine.links[0].latency_seconds = 2e-6;
  Fixture test(machine);
  test.copy(test.stream(0, StreamKind::copy_in), 0, 1, 5 * kilobytes);
  const Completion done = test.next();
  EXPECT_EQ(done.begin, 0);
  EXPECT_EQ(done.end, 7000);
  EXPECT_EQ(test.backend->now(), 7000);
}

TEST(Virtual, CopiesShareALinkWhileTheyFlow) {
  Fixture test;
  test.copy(test.stream(0, StreamKind::copy_in), 0, 1, 1 * kilobytes);
  test.copy(test.stream(1, StreamKind::copy_in), 0, 2, 3 * kilobytes);
  test.copy(test.stream(0, StreamKind::copy_out), 1, 0, 4 * kilobytes);
  // At half speed each until the short one ends at 2000 ns; the long one's last 2000 bytes alone.
  // The other direction has the link to itself.
  EXPECT_EQ(test.ends(3), (Fixture::Times{2000, 4000, 4000}));
}

TEST(Virtual, LatencyDoesNotOccupyTheLink) {
  Machine machine = two_devices();
  machine.links.push_back({"far", 1e10, 1e-6});
  machine.routes[1].links.push_back(2);
  Fixture test(machine);
  test.copy(test.stream(0, StreamKind::copy_in), 0, 1, 1 * kilobytes);
  test.copy(test.stream(1, StreamKind::copy_in), 0, 2, 1 * kilobytes);
  EXPECT_EQ(test.ends(2), (Fixture::Times{1000, 2000}));
}

// Runs of 100 bytes reach a quarter of the link to the devices, those of 400 all of it.
Machine slow_by_short_runs() {
  Machine machine = two_devices();
  machine.links[0].runs = {{100, 0.25}, {400, 1}};
  return machine;
}

TEST(Virtual, ShortRunsReachTheirShareOfALink) {
  for (const auto& [run, count, end] :
       {std::tuple(100, 8, 3200), {200, 4, 1280}, {400, 2, 800}, {50, 16, 6400}, {800, 1, 800}}) {
    SCOPED_TRACE(run);
    Fixture test(slow_by_short_runs());
    test.copy_runs(test.stream(0, StreamKind::copy_in), 0, 1, run, count, 1000);
    test.copy_runs(test.stream(0, StreamKind::copy_out), 1, 0, run, count, 1000);
    EXPECT_EQ(test.ends(2), (Fixture::Times{800, end})) << "the way home has no table";
  }
}

TEST(Virtual, RunsThatTouchAtBothEndsAreOne) {
  Fixture test(slow_by_short_runs());
  const StreamId in = test.stream(0, StreamKind::copy_in);
  test.copy_runs(in, 0, 1, 100, 8, 100);
  static std::byte place;
  test.backend->copy(in, {0, 1, &place, &place, 100, 8, 100, 200});
  test.copy(in, 0, 1, 100);
  EXPECT_EQ(test.ends(3), (Fixture::Times{800, 4000, 4100}));
}

TEST(Virtual, OthersGetWhatShortRunsLeaveOfALink) {
  Fixture test(slow_by_short_runs());
  test.copy(test.stream(0, StreamKind::copy_in), 0, 1, 300);
  test.copy_runs(test.stream(1, StreamKind::copy_in), 0, 2, 100, 4, 1000);
  test.copy(test.stream(0, StreamKind::copy_in), 0, 1, 1125);
  // Short runs move a quarter of a byte a nanosecond, the others 3/8 each until the first ends at
  // 800; then 3/4. Short runs end at 1600, with 225 bytes of the other one left.
  EXPECT_EQ(test.ends(3), (Fixture::Times{800, 1600, 1825}));
}

TEST(Virtual, WhatShortRunsLeftIsNotLimitedByThem) {
  Fixture test(slow_by_short_runs());
  test.copy_runs(test.stream(1, StreamKind::copy_in), 0, 2, 100, 2, 1000);
  test.copy(test.stream(0, StreamKind::copy_in), 0, 1, 600);
  test.copy(test.stream(0, StreamKind::copy_in), 0, 1, 800);
  // From 800 on the others share the link, with 300 and 500 bytes left.
  EXPECT_EQ(test.ends(3), (Fixture::Times{800, 1400, 1600}));
}

TEST(Virtual, ShortRunsThatShareALinkAreNoSlowerThanTheirShare) {
  Fixture test(slow_by_short_runs());
  for (int i = 0; i < 5; ++i)
    test.copy_runs(test.stream(0, StreamKind::copy_in), 0, 1, 100, 8, 1000);
  EXPECT_EQ(test.ends(5), (Fixture::Times{4000, 4000, 4000, 4000, 4000})) << "a fifth each";
}

TEST(Virtual, OneStreamIsSerial) {
  Fixture test;
  const StreamId in = test.stream(0, StreamKind::copy_in);
  test.copy(in, 0, 1, 1 * kilobytes);
  test.copy(in, 0, 1, 1 * kilobytes);
  EXPECT_EQ(test.ends(2), (Fixture::Times{1000, 2000}));
}

TEST(Virtual, KernelsOfADeviceShareItsSpeed) {
  Fixture test;
  test.launch(test.stream(0, StreamKind::compute), 1000);
  test.launch(test.stream(0, StreamKind::compute), 3000);
  test.launch(test.stream(1, StreamKind::compute), 1000);
  EXPECT_EQ(test.ends(3), (Fixture::Times{1000, 2000, 4000}));
}

TEST(Virtual, KernelThatJoinsSlowsTheRunningOne) {
  Fixture test;
  test.launch(test.stream(0, StreamKind::compute), 2000);
  const StreamId in = test.stream(0, StreamKind::copy_in);
  const StreamId other = test.stream(0, StreamKind::compute);
  test.backend->wait(other, test.copy(in, 0, 1, 1 * kilobytes));
  test.launch(other, 1000);
  // From 1000 ns on both have 1000 ns of work left and get half the device.
  EXPECT_EQ(test.ends(3), (Fixture::Times{1000, 3000, 3000}));
}

/// Two at once take 4/3 of the time each, of what takes 1 ns of work by order 10.
Machine quicker_by_two() {
  Machine machine = two_devices();
  machine.kernels["k*2"]["gpu"] = {{10, machine.kernels["k"]["gpu"][10] * 4 / 3}};
  return machine;
}

TEST(Virtual, KernelsAtOnceTakeWhatTheDescriptionSays) {
  Fixture test(quicker_by_two());
  test.launch(test.stream(0, StreamKind::compute), 3000);
  test.launch(test.stream(0, StreamKind::compute), 6000);
  test.launch(test.stream(1, StreamKind::compute), 6000);
  // Until the first ends at 4000 both have got 3000 of their work.
  EXPECT_EQ(test.ends(3), (Fixture::Times{4000, 6000, 7000}));
}

TEST(Virtual, KernelsInARowGainNothing) {
  Fixture test(quicker_by_two());
  const StreamId stream = test.stream(0, StreamKind::compute);
  test.launch(stream, 1000);
  test.launch(stream, 2000);
  EXPECT_EQ(test.ends(2), (Fixture::Times{1000, 3000}));
}

TEST(Virtual, MoreKernelsThanDescribedReachWhatTheMostThatAreReach) {
  Machine machine = quicker_by_two();
  machine.devices[0].compute_streams = 4;
  for (const int count : {3, 4}) {
    Fixture test(machine);
    for (int i = 0; i < count; ++i) test.launch(test.stream(0, StreamKind::compute), 1500);
    const Nanoseconds end = 1000 * count;
    EXPECT_EQ(test.ends(count), Fixture::Times(count, end)) << "1.5 times one's speed in all";
  }
}

TEST(Virtual, RowsThatSayMoreThanCanBeAreBounded) {
  for (const auto& [times, end] : {std::pair{0.5, 1000}, std::pair{5.0, 2000}}) {
    Machine machine = quicker_by_two();
    machine.kernels["k*2"]["gpu"] = {{10, 1e-6 * times}};
    Fixture test(machine);
    for (int i = 0; i < 2; ++i) test.launch(test.stream(0, StreamKind::compute), 1000);
    EXPECT_EQ(test.ends(2), Fixture::Times(2, end)) << times;
  }
}

TEST(Virtual, MoreKernelsThanSlotsWaitPanelsFirst) {
  Machine machine = two_devices();
  machine.devices[0].compute_streams = 1;
  Fixture test(machine);
  const StreamId first = test.stream(0, StreamKind::compute);
  const StreamId second = test.stream(0, StreamKind::compute);
  const StreamId panel = test.stream(0, StreamKind::panel);
  test.launch(first);
  test.launch(first);
  Completion none;
  EXPECT_EQ(test.backend->next_completion({&none, 1}, 500), 0u);
  test.launch(second);
  test.launch(panel);
  EXPECT_EQ(test.next().end, 1000);
  const Completion next = test.next();
  EXPECT_EQ(next.event.stream, panel);
  EXPECT_EQ(next.end, 2000);
  EXPECT_EQ(test.next().event.stream, first);
  EXPECT_EQ(test.next().event.stream, second);
}

TEST(Virtual, CoresDoNotShareSpeed) {
  Machine machine;
  Device cpu;
  cpu.name = "cpu";
  cpu.cores = cpu.compute_streams = 2;
  cpu.rates = "cpu";
  machine.devices = {cpu};
  machine.kernels["k"]["cpu"] = {{10, 1e-6}};
  machine.launch_seconds = 5e-7;
  Fixture test(machine);
  test.launch(test.stream(0, StreamKind::compute), 1000);
  test.launch(test.stream(0, StreamKind::compute), 2000);
  test.launch(test.stream(0, StreamKind::compute), 1000);
  EXPECT_EQ(test.ends(3), (Fixture::Times{1500, 2500, 3000}));
}

/// It has its place in its stream, and ends with the error.
TEST(Virtual, UnknownCostEndsWithAnErrorThatNamesIt) {
  Fixture test;
  const StreamId compute = test.stream(0, StreamKind::compute);
  const Kernel kernel = [](const Arguments&) { FAIL() << "it ran"; };
  Launch launch;
  launch.kernel = &kernel;
  launch.name = "mystery";
  EXPECT_EQ(test.backend->launch(compute, launch), (Event{compute, 1}));
  launch.cost = {"absent", 10, 10};
  EXPECT_EQ(test.backend->launch(compute, launch), (Event{compute, 2}));
  for (const char* const named : {"mystery", "absent"}) {
    Completion done;
    ASSERT_EQ(test.backend->next_completion({&done, 1}, never), 1u);
    try {
      ASSERT_TRUE(done.error);
      std::rethrow_exception(done.error);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::unavailable);
      EXPECT_NE(std::string(error.what()).find(named), std::string::npos) << error.what();
    }
  }
}

TEST(Virtual, TimeStopsAtTheDeadline) {
  Fixture test;
  test.copy(test.stream(0, StreamKind::copy_in), 0, 1, 1 * kilobytes);
  Completion none;
  EXPECT_EQ(test.backend->next_completion({&none, 1}, 400), 0u);
  EXPECT_EQ(test.backend->now(), 400);
  EXPECT_EQ(test.next().end, 1000);
}

TEST(Virtual, EventsThatDoNotExistAreRefused) {
  Fixture test;
  const StreamId a = test.stream(0, StreamKind::compute);
  const StreamId b = test.stream(0, StreamKind::compute);
  test.launch(b);
  EXPECT_THROW(test.backend->wait(a, {b, 2}), Error);
  EXPECT_THROW(test.backend->wait(a, {9, 1}), Error);
  EXPECT_THROW(test.backend->wait(9, {b, 1}), Error);
}

// The times of a random program on the machine; what it does depends on `program` alone.
std::vector<Completion> run_random(std::uint64_t program, VirtualOptions options) {
  Fixture test(two_devices(), options);
  Random random(program);
  std::vector<StreamId> streams;
  std::vector<Event> events;
  for (int i = 0; i < 3; ++i) {
    for (DeviceId device = 0; device < 2; ++device) {
      streams.push_back(test.stream(device, StreamKind::compute));
    }
  }
  for (int i = 0; i < 300; ++i) {
    const StreamId stream = streams[random.below(streams.size())];
    if (!events.empty()) test.backend->wait(stream, events[random.below(events.size())]);
    const std::size_t size = 100 + random.below(5000);
    const auto to = static_cast<SpaceId>(1 + random.below(2));
    events.push_back(random.chance(0.5) ? test.copy(stream, 0, to, size)
                                        : test.launch(stream, static_cast<double>(size)));
  }
  std::vector<Completion> done(300);
  for (std::size_t i = 0; i < done.size(); ++i) done[i] = test.next();
  return done;
}

bool same(const std::vector<Completion>& a, const std::vector<Completion>& b) {
  return std::ranges::equal(a, b, [](const Completion& x, const Completion& y) {
    return x.event == y.event && x.begin == y.begin && x.end == y.end;
  });
}

TEST(Virtual, SameSeedSameCompletions) {
  const VirtualOptions noisy{.compute = false, .noise = 0.2, .seed = 7};
  const VirtualOptions other{.compute = false, .noise = 0.2, .seed = 8};
  for (std::uint64_t program = 0; program < 20; ++program) {
    EXPECT_TRUE(same(run_random(program, noisy), run_random(program, noisy)));
    EXPECT_FALSE(same(run_random(program, noisy), run_random(program, other)));
    EXPECT_FALSE(same(run_random(program, noisy), run_random(program, timing_only)));
  }
}

TEST(Virtual, MemoryThatIsNotComputedOnIsNeverTouched) {
  Fixture test;
  std::byte* memory = test.backend->allocate(0, 1 << 20);
  ASSERT_NE(memory, nullptr);
  const StreamId in = test.stream(0, StreamKind::copy_in);
  const std::byte* absent = reinterpret_cast<const std::byte*>(16);
  test.backend->copy(in, {0, 1, absent, memory, 1000});
  EXPECT_FALSE(test.next().error);
}

// --- protected memory

struct Protected : testing::Test {
  Protected() : test(two_devices(), {.compute = true, .protect = true}) {
    mine = test.backend->allocate(0, 4096);
    foreign = test.backend->allocate(0, 4096);
    elsewhere = test.backend->allocate(1, 4096);
    compute = test.stream(0, StreamKind::compute);
  }
  std::string run(const Kernel& kernel) {
    const View operand{mine, 8, 8, 8, DType::float64};
    Launch launch;
    launch.kernel = &kernel;
    launch.arguments.operands = {&operand, 1};
    launch.cost = {"k", 10, 10};
    launch.name = "stray";
    test.backend->launch(compute, launch);
    const Completion done = test.next();
    if (!done.error) return "";
    try {
      std::rethrow_exception(done.error);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::task_failed);
      return error.what();
    }
  }
  Fixture test;
  std::byte* mine;
  std::byte* foreign;
  std::byte* elsewhere;
  StreamId compute = 0;
};

TEST_F(Protected, OperandsAreOpen) {
  EXPECT_EQ(run([](const Arguments& call) { call.operands[0].as<double>()[63] = 4; }), "");
  EXPECT_EQ(reinterpret_cast<double*>(mine)[63], 4.0);
}

TEST_F(Protected, StrayAccessFailsTheTaskByName) {
  for (std::byte* stray : {foreign, elsewhere}) {
    const std::string write =
        run([stray](const Arguments&) { *static_cast<volatile std::byte*>(stray) = std::byte{1}; });
    EXPECT_NE(write.find("'stray'"), std::string::npos) << write;
    const std::string read = run([stray](const Arguments& call) {
      call.operands[0].as<std::byte>()[0] = *static_cast<volatile std::byte*>(stray);
    });
    EXPECT_NE(read.find("'stray'"), std::string::npos) << read;
    EXPECT_EQ(*stray, std::byte{0}) << "memory is open again, and unchanged";
  }
  EXPECT_EQ(run([](const Arguments&) {}), "") << "the next variant runs";
}

TEST_F(Protected, ThrowingVariantLeavesMemoryOpen) {
  EXPECT_NE(run([](const Arguments&) { fail(Errc::task_failed, "on purpose"); }), "");
  EXPECT_EQ(*foreign, std::byte{0});
}

}  // namespace
}  // namespace quadriga
