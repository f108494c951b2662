// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/device/parking_test.cpp: operations that can't be queued yet, against a model of
// streams.
#include "device/parking.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace quadriga {
namespace {

// Streams of a device, and one of the CPU whose operations end when a test says so. An operation is
// a copy whose width is its ticket; those of odd width hold their stream until they are let go.
class Model {
 public:
  static constexpr StreamId cpu = 0;
  explicit Model(std::size_t streams) : issued_(streams), queued_(streams), held_(streams) {}

  Event issue(StreamId stream) {
    const std::uint64_t ticket = ++issued_[stream];
    if (stream != cpu) parking.add(stream, Copy{.width_bytes = ticket});
    return {stream, ticket};
  }
  void wait(StreamId stream, Event event) {
    if (event) parking.add(stream, event);
  }
  void end_cpu() {
    if (queued_[cpu] < issued_[cpu]) ++queued_[cpu];
    parking.look();
  }
  bool let_go(StreamId stream) {
    if (!held_[stream]) return false;
    held_[stream] = false;
    ++queued_[stream];
    parking.release(stream);
    parking.look();
    return true;
  }
  std::uint64_t issued(StreamId stream) const { return issued_[stream]; }
  std::uint64_t queued(StreamId stream) const { return queued_[stream]; }
  bool held(StreamId stream) const { return held_[stream]; }

  bool holds = true;  // Whether operations hold their streams.
  Parking parking{
      [this](StreamId, const Operation& operation) { return can_queue(operation); },
      [this](StreamId stream, const Operation& operation) { queue(stream, operation); }};

 private:
  bool can_queue(const Operation& operation) const {
    const Event* const event = std::get_if<Event>(&operation);
    return event == nullptr || event->ticket <= queued_[event->stream];
  }
  void queue(StreamId stream, const Operation& operation) {
    ASSERT_FALSE(held_[stream]) << "an operation passed one that holds its stream";
    if (const Event* const event = std::get_if<Event>(&operation)) {
      ASSERT_LE(event->ticket, queued_[event->stream]) << "a wait for what isn't queued";
      return;
    }
    const std::uint64_t ticket = std::get<Copy>(operation).width_bytes;
    ASSERT_EQ(ticket, queued_[stream] + 1) << "out of order";
    if (holds && ticket % 2 == 1) {
      held_[stream] = true;
      parking.hold(stream);
    } else {
      ++queued_[stream];
    }
  }

  std::vector<std::uint64_t> issued_;  // By stream: the latest ticket.
  std::vector<std::uint64_t> queued_;  // Of the CPU: ended.
  std::vector<bool> held_;
};

TEST(ParkingTest, WhatNeedNotWaitIsQueuedAtOnce) {
  Model model(2);
  model.holds = false;
  model.issue(1);
  model.issue(1);
  EXPECT_EQ(model.queued(1), 2u);
  EXPECT_TRUE(model.parking.empty());
}

TEST(ParkingTest, AStreamWaitsForTheCpuAndOthersForIt) {
  Model model(3);
  model.holds = false;
  const Event body = model.issue(Model::cpu);
  model.wait(1, body);
  const Event after = model.issue(1);
  model.wait(2, after);
  model.issue(2);
  EXPECT_EQ(model.queued(1) + model.queued(2), 0u);
  model.end_cpu();
  EXPECT_EQ(model.queued(1), 1u);
  EXPECT_EQ(model.queued(2), 1u);
  EXPECT_TRUE(model.parking.empty());
}

TEST(ParkingTest, WhatFollowsAnOperationThatHoldsItsStreamIsParked) {
  Model model(3);
  const Event slow = model.issue(1);
  model.issue(1);
  model.wait(2, slow);
  model.issue(2);
  EXPECT_EQ(model.queued(1), 0u);
  EXPECT_FALSE(model.held(2));
  EXPECT_TRUE(model.let_go(1));
  EXPECT_EQ(model.queued(1), 2u);
  EXPECT_TRUE(model.held(2));
  EXPECT_TRUE(model.let_go(2));
  EXPECT_TRUE(model.parking.empty());
}

// Whatever is issued and waited for, in whatever order calls and the CPU end: all is queued
// at last.
TEST(ParkingTest, RandomStreamsAllGoOn) {
  constexpr std::size_t streams = 6;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    Model model(streams);
    std::vector<Event> events;
    for (int step = 0; step < 300; ++step) {
      const auto stream = static_cast<StreamId>(random.below(streams));
      switch (random.below(4)) {
        case 0:
          model.let_go(stream);
          break;
        case 1:
          model.end_cpu();
          break;
        default:
          if (stream != Model::cpu && !events.empty())
            model.wait(stream, events[random.below(events.size())]);
          events.push_back(model.issue(stream));
      }
      ASSERT_FALSE(testing::Test::HasFatalFailure()) << "seed " << seed;
    }
    const auto left = [&] {
      std::size_t count = 0;
      for (StreamId stream = 0; stream < streams; ++stream)
        count += model.issued(stream) - model.queued(stream);
      return count;
    };
    for (std::size_t before = left() + 1; left() < before;) {
      before = left();
      model.end_cpu();
      for (StreamId stream = 1; stream < streams; ++stream) model.let_go(stream);
    }
    ASSERT_EQ(left(), 0u) << "seed " << seed;
    ASSERT_TRUE(model.parking.empty()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace quadriga
