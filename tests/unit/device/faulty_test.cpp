// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/device/faulty_test.cpp: injected faults come where the plan says, and only there.
#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <algorithm>
#include <array>

#include "device/factory.h"

namespace quadriga {
namespace {

std::unique_ptr<Backend> faulty(FaultPlan plan) {
  return make_faulty_backend(make_emulated_backend(Machine::parse("emulated:2,peer=1GB/s")),
                             std::move(plan));
}

Completion next(Backend& backend) {
  Completion completion;
  while (backend.next_completion({&completion, 1}, never) == 0) {
  }
  return completion;
}

Errc code_of(const Completion& completion) {
  try {
    std::rethrow_exception(completion.error);
  } catch (const Error& error) {
    return error.code();
  }
}

TEST(Faults, NumberedAllocationsGiveNull) {
  const auto backend = faulty({.allocations = {2}});
  EXPECT_NE(backend->allocate(0, 10), nullptr);
  EXPECT_EQ(backend->allocate(1, 10), nullptr);
  EXPECT_NE(backend->allocate(0, 10), nullptr);
}

TEST(Faults, FailedCopyMovesNothingAndTheNextOneWorks) {
  const auto backend = faulty({.copies = {1, 3}});
  std::byte* memory = backend->allocate(0, 4);
  std::array<std::byte, 4> host{std::byte{1}};
  const StreamId in = backend->create_stream(0, StreamKind::copy_in);
  backend->copy(in, {0, 1, host.data(), memory, 4});
  EXPECT_EQ(code_of(next(*backend)), Errc::io);
  EXPECT_EQ(memory[0], std::byte{0});
  backend->copy(in, {0, 1, host.data(), memory, 4});
  EXPECT_FALSE(next(*backend).error);
  EXPECT_EQ(memory[0], std::byte{1});
}

TEST(Faults, FailedAndRefusedLaunchesDoNotRun) {
  const auto backend = faulty({.launches = {1}, .refused_launches = {2}});
  int runs = 0;
  const Kernel kernel = [&runs](const Arguments&) { ++runs; };
  Launch launch;
  launch.kernel = &kernel;
  const StreamId compute = backend->create_stream(0, StreamKind::compute);
  for (std::uint64_t ticket = 1; ticket <= 3; ++ticket)
    EXPECT_EQ(backend->launch(compute, launch).ticket, ticket);
  EXPECT_EQ(code_of(next(*backend)), Errc::task_failed);
  EXPECT_EQ(code_of(next(*backend)), Errc::unavailable);
  EXPECT_FALSE(next(*backend).error);
  EXPECT_EQ(runs, 1);
}

// What is refused for its arguments has no place in its stream.
/// A call whose arguments are refused doesn't count.
TEST(Faults, RefusedArgumentsLeaveNoFailureBehind) {
  const auto backend =
      make_faulty_backend(make_virtual_backend(Machine::parse("emulated:1")), {.copies = {2}});
  std::array<std::byte, 4> host{};
  std::byte* const memory = backend->allocate(0, 4);
  const StreamId in = backend->create_stream(0, StreamKind::copy_in);
  EXPECT_THROW(backend->copy(in, {0, 0, host.data(), memory, 4}), Error) << "no route leads there";
  EXPECT_EQ(backend->copy(in, {0, 1, host.data(), memory, 4}).ticket, 1u);
  EXPECT_FALSE(next(*backend).error);
  EXPECT_EQ(backend->copy(in, {0, 1, host.data(), memory, 4}).ticket, 2u);
  EXPECT_TRUE(next(*backend).error);
}

TEST(Faults, LostDeviceFailsWhateverTouchesItAndOthersWork) {
  const auto backend = faulty({.losses = {{.device = 0, .operations = 1}}});
  std::byte* first = backend->allocate(0, 4);
  std::byte* second = backend->allocate(1, 4);
  std::array<std::byte, 4> host{};
  const StreamId in0 = backend->create_stream(0, StreamKind::copy_in);
  const StreamId in1 = backend->create_stream(1, StreamKind::copy_in);
  backend->copy(in0, {0, 1, host.data(), first, 4});
  EXPECT_FALSE(next(*backend).error) << "the last operation before the loss";
  backend->copy(in0, {0, 1, host.data(), first, 4});
  EXPECT_EQ(code_of(next(*backend)), Errc::device_lost);
  backend->copy(in1, {1, 2, first, second, 4});
  EXPECT_EQ(code_of(next(*backend)), Errc::device_lost);
  backend->copy(in1, {0, 2, host.data(), second, 4});
  EXPECT_FALSE(next(*backend).error);
  EXPECT_EQ(backend->allocate(0, 4), nullptr);
}

// Which of 200 copies fail.
std::string failures(std::uint64_t seed) {
  const auto backend = faulty({.copy_probability = 0.2, .seed = seed});
  const StreamId in = backend->create_stream(0, StreamKind::copy_in);
  std::byte* memory = backend->allocate(0, 1);
  std::byte host{};
  std::string which;
  for (int i = 0; i < 200; ++i) {
    backend->copy(in, {0, 1, &host, memory, 1});
    which += next(*backend).error ? 'x' : '.';
  }
  return which;
}

TEST(Faults, DrawnBySeed) {
  EXPECT_EQ(failures(1), failures(1));
  EXPECT_NE(failures(1), failures(2));
  const auto count = std::ranges::count(failures(3), 'x');
  EXPECT_GT(count, 10);
  EXPECT_LT(count, 90);
}

}  // namespace
}  // namespace quadriga
