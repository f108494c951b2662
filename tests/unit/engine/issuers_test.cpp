// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/issuers_test.cpp: what issuers queue, and when, while others haven't yet.
#include "engine/issuers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <mutex>
#include <semaphore>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "polled_backend.h"

namespace quadriga {
namespace {

const Kernel nothing = [](const Arguments&) {};

/// Notes each call; `before` comes ahead of a launch.
class NotingBackend final : public PolledBackend {
 public:
  explicit NotingBackend(std::size_t devices)
      : PolledBackend(Machine::parse("emulated:" + std::to_string(devices))) {}
  Event launch(StreamId stream, const Launch& launch) override {
    if (before) before(stream);
    const Event event = PolledBackend::launch(stream, launch);
    const std::lock_guard lock(mutex_);
    launched_.push_back(event);
    queued_.insert({event.stream, event.ticket});
    return event;
  }
  void wait(StreamId, Event event) override {
    const std::lock_guard lock(mutex_);
    early_ += !queued_.contains({event.stream, event.ticket});
  }

  std::vector<Event> launched() {
    const std::lock_guard lock(mutex_);
    return launched_;
  }
  /// Waits for what wasn't queued.
  int early() {
    const std::lock_guard lock(mutex_);
    return early_;
  }
  std::function<void(StreamId)> before;

 private:
  std::mutex mutex_;  // Guards what follows.
  std::vector<Event> launched_;
  std::set<std::pair<StreamId, std::uint64_t>> queued_;
  int early_ = 0;
};

Event launch(Instructions& instructions, StreamId stream) {
  Launch made;
  made.kernel = &nothing;
  return instructions.launch(stream, made);
}

/// Until so many operations have ended.
void take_ends(Issuers& issuers, std::size_t count) {
  std::array<Completion, 16> ended;
  while (count > 0) {
    const std::size_t found = issuers.next(ended, never);
    ASSERT_LE(found, count);
    count -= found;
  }
}

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
  constexpr StreamId streams = 9;
  constexpr std::size_t operations = 3000;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    Random random(seed);
    NotingBackend backend(3);
    std::vector<DeviceId> devices;
    for (StreamId stream = 0; stream < streams; ++stream) {
      devices.push_back(static_cast<DeviceId>(stream % 3));
      backend.create_stream(devices.back(), StreamKind::compute);
    }
    Issuers issuers(backend, devices, true);
    Instructions instructions;
    std::vector<Event> made;
    std::size_t ended = 0;
    for (std::size_t i = 0; i < operations; ++i) {
      const auto stream = static_cast<StreamId>(random.below(streams));
      if (!made.empty() && random.below(2) == 0)
        instructions.wait(stream, made[made.size() - 1 - random.below(std::min(made.size(), 9ul))]);
      made.push_back(launch(instructions, stream));
      if (random.below(3) == 0) issuers.take(instructions);
      if (random.below(50) == 0) {
        std::array<Completion, 16> some;
        ended += issuers.next(some, 0);
      }
    }
    issuers.take(instructions);
    take_ends(issuers, operations - ended);
    EXPECT_EQ(backend.early(), 0);
    std::array<std::uint64_t, streams> last{};
    for (const Event& event : backend.launched()) EXPECT_EQ(event.ticket, ++last[event.stream]);
  }
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
