// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/issuers_test.cpp: what issuers queue, and when, while others haven't yet.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <semaphore>
#include <thread>
#include <vector>

#include "unit/engine/random_issuers.h"

namespace quadriga {
namespace {

// Device 0 queues A only once device 1 has queued C, which stands behind a wait for A in another
// stream.
TEST(Issuers, AStreamThatMustWaitHoldsUpNoOther) {
  NotingBackend backend(2);
  std::binary_semaphore other{0};
  bool came = false;
  backend.before = [&](StreamId stream) {
    if (stream == 0) came = other.try_acquire_for(std::chrono::seconds(120));
    if (stream == 2) other.release();
  };
  Issuers issuers(backend, {0, 1, 1}, true);
  for (int i = 0; i < 3; ++i) backend.create_stream(0, StreamKind::compute);
  Instructions instructions;
  const Event a = launch(instructions, 0);
  instructions.wait(1, a);
  const Event b = launch(instructions, 1);
  launch(instructions, 2);
  issuers.take(instructions);
  take_ends(issuers, 3);
  EXPECT_TRUE(came);
  EXPECT_EQ(backend.early(), 0);
  const std::vector<Event> launched = backend.launched();
  EXPECT_EQ(launched.size(), 3u);
  EXPECT_LT(std::ranges::find(launched, a), std::ranges::find(launched, b));
}

TEST(Issuers, StreamsKeepTheirOrderAndWaitForWhatIsQueued) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) EXPECT_EQ(run_random_issuers(seed), "");
}

// Two streams of device 1 wait for device 0, of which nothing is queued.
TEST(Issuers, NothingIsWaitedForThatFailedToQueue) {
  NotingBackend backend(2);
  backend.before = [](StreamId stream) {
    if (stream == 0) fail(Errc::unavailable, "no room");
  };
  Issuers issuers(backend, {0, 1, 1}, true);
  for (int i = 0; i < 3; ++i) backend.create_stream(0, StreamKind::compute);
  Instructions instructions;
  const Event a = launch(instructions, 0);
  for (const StreamId stream : {1U, 2U}) {
    instructions.wait(stream, a);
    launch(instructions, stream);
  }
  issuers.take(instructions);
  EXPECT_THROW(take_ends(issuers, 3), Error);
  EXPECT_TRUE(backend.launched().empty());
  EXPECT_EQ(backend.early(), 0);
}

// What it holds goes with it.
TEST(Issuers, StopsWhileItWaitsForAnother) {
  NotingBackend backend(2);
  std::binary_semaphore begun{0};
  std::binary_semaphore goes_on{0};
  backend.before = [&](StreamId stream) {
    if (stream != 0) return;
    begun.release();
    goes_on.acquire();
  };
  Issuers issuers(backend, {0, 1}, true);
  for (int i = 0; i < 2; ++i) backend.create_stream(0, StreamKind::compute);
  Instructions instructions;
  instructions.wait(1, launch(instructions, 0));
  launch(instructions, 1);
  issuers.take(instructions);
  std::array<Completion, 1> none;
  EXPECT_EQ(issuers.next(none, 0), 0u);
  begun.acquire();
  std::thread stops([&] { issuers.stop(); });
  goes_on.release();
  stops.join();
  EXPECT_LE(backend.launched().size(), 2u);
}

}  // namespace
}  // namespace quadriga
