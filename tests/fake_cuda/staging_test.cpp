// SPDX-License-Identifier: BSD-3-Clause
// tests/fake_cuda/staging_test.cpp: copies of pageable memory while calls of the runtime wait for
// the device, as they do beside a library that loads its kernels.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/random.h"
#include "device/cuda/cuda_backend.h"
#include "fake_cuda/streams.h"

namespace quadriga {
namespace {

constexpr Nanoseconds a_minute = 60'000'000'000;

std::size_t ended(Backend& backend, std::size_t count) {
  std::size_t found = 0;
  const Nanoseconds until = backend.now() + a_minute;
  while (found < count && backend.now() < until) {
    std::array<Completion, 4> some;
    found += backend.next_completion(some, until);
  }
  return found;
}

class StagingTest : public testing::TestWithParam<std::size_t> {
 protected:
  StagingTest() { fake_cuda::faults().copies_synchronize = true; }
  ~StagingTest() override {
    fake_cuda::faults().copies_synchronize = false;
    fake_cuda::faults().stuck_copies = 0;
  }
};

// A stream waits for threads that fill and empty buffers, so they must not wait for the issuer,
// which any call may hold up until that stream is idle.
TEST_P(StagingTest, NoCallOfTheIssuerIsNeededWhileAStreamWaits) {
  const std::size_t bytes = GetParam();
  Machine machine = discover_cuda();
  for (Device& device : machine.devices) device.memory_bytes = std::size_t{256} << 20;
  const auto backend = make_cuda_backend(machine);
  const StreamId in = backend->create_stream(0, StreamKind::copy_in);
  const StreamId out = backend->create_stream(0, StreamKind::copy_out);
  std::byte* const block = backend->allocate(0, bytes);
  std::vector<std::byte> source(bytes);
  std::vector<std::byte> target(bytes);
  Random random(bytes);
  for (std::size_t at = 0; at + 8 <= bytes; at += 8) {
    const std::uint64_t word = random();
    std::memcpy(source.data() + at, &word, 8);
  }
  const SpaceId space{1};
  const Event there = backend->copy(in, {host_space, space, source.data(), block, bytes});
  backend->wait(out, there);
  backend->copy(out, {space, host_space, block, target.data(), bytes});
  EXPECT_EQ(ended(*backend, 2), 2U);
  EXPECT_EQ(fake_cuda::faults().stuck_copies.load(), 0);
  EXPECT_EQ(source, target);
}

// Less than a small buffer; several large ones; more than a lane has.
INSTANTIATE_TEST_SUITE_P(Bytes, StagingTest,
                         testing::Values(1000, (std::size_t{9} << 20) + 77, std::size_t{80} << 20),
                         [](const auto& size) { return "B" + std::to_string(size.param); });

}  // namespace
}  // namespace quadriga
