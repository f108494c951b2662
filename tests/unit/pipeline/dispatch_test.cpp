// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/pipeline/dispatch_test.cpp: the dispatch under random events, and its orders.
#include "pipeline/dispatch.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/random.h"
#include "pipeline/admission.h"

namespace quadriga {
namespace {

using Kind = StreamCommand::Kind;

StreamDevice device_on(int link, std::size_t memory = 1000) {
  StreamDevice device;
  device.links_in = {link};
  device.links_out = {link};
  device.memory_bytes = memory;
  device.copy_engines = 1;
  return device;
}

StreamChunk chunk_of(std::uint64_t number, double size) {
  return {number, size, static_cast<std::size_t>(size)};
}

/// The sizes in which one device gets chunks that are all there before.
std::vector<double> sizes_in(Order order, const std::vector<double>& sizes) {
  Dispatch dispatch({device_on(0)}, {{1}}, order);
  std::map<std::uint32_t, double> size_of_chunk;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    size_of_chunk[dispatch.add(chunk_of(i, sizes[i]))] = sizes[i];
  dispatch.close();
  std::vector<double> found;
  while (const auto command = dispatch.next()) {
    if (command->kind == Kind::enter) {
      found.push_back(size_of_chunk[command->chunk]);
      dispatch.computed(command->chunk);
    } else {
      dispatch.gone(command->chunk);
    }
  }
  return found;
}

TEST(Dispatch, AChunkWaitsUntilItsBlocksHaveAPlace) {
  Dispatch dispatch({device_on(0, 1024)}, {{1}}, Order::first_come);
  const auto add = [&](std::uint64_t number, std::size_t bytes) {
    return dispatch.add({number, 1, bytes, false, false, {bytes}});
  };
  std::vector<std::uint32_t> small;
  for (std::uint64_t i = 0; i < 3; ++i) {
    small.push_back(add(i, 256));
    ASSERT_EQ(dispatch.next()->kind, Kind::enter);
    dispatch.computed(small.back());
    ASSERT_EQ(dispatch.next()->kind, Kind::leave);
  }
  dispatch.gone(small[0]);
  add(3, 512);  // 256 are free on each side of the two that are there
  EXPECT_FALSE(dispatch.next().has_value());
  dispatch.gone(small[1]);
  ASSERT_TRUE(dispatch.next().has_value());
  dispatch.validate();
}

/// Which chunk a device that has one of this size gets next; its head lasts as long as kernels of
/// `head` times its size.
double next_behind(double size, double head, const std::vector<double>& waiting, bool closed,
                   Order order = Order::adaptive) {
  Dispatch dispatch({device_on(0, 10'000)}, {{1}}, order);
  const auto pass = [&](std::uint64_t number) {
    const auto small = dispatch.add(chunk_of(number, 1));
    EXPECT_EQ(dispatch.next()->chunk, small);
    dispatch.computed(small);
    EXPECT_EQ(dispatch.next()->kind, Kind::leave);
    dispatch.gone(small);
  };
  pass(0), pass(1);  // which every device gets first
  const auto first = dispatch.add(chunk_of(2, size));
  EXPECT_EQ(dispatch.next()->chunk, first);
  dispatch.staged(first);
  std::map<std::uint32_t, double> sizes;
  for (const double each : waiting) {
    StreamChunk chunk = chunk_of(3 + sizes.size(), each);
    chunk.head = head * each;
    sizes[dispatch.add(chunk)] = each;
  }
  if (closed) dispatch.close();
  const auto command = dispatch.next();
  EXPECT_EQ(command->kind, Kind::enter);
  return sizes.at(command->chunk);
}

TEST(Dispatch, ADeviceGetsTheLargestChunkThatComesBeforeItHasNothingToDo) {
  const std::vector<double> waiting{30, 90, 50, 10};
  EXPECT_EQ(next_behind(20, 0, waiting, false), 90);    // nobody knows
  EXPECT_EQ(next_behind(20, 0.2, waiting, false), 90);  // 18 of 20
  EXPECT_EQ(next_behind(20, 0.5, waiting, false), 30);  // 25 of 20 are too many
  EXPECT_EQ(next_behind(5, 1, waiting, false), 10);     // none does: the smallest is there first
  // The other orders are what they say, and once all are known the largest is first.
  EXPECT_EQ(next_behind(20, 0.5, waiting, false, Order::largest), 90);
  EXPECT_EQ(next_behind(20, 0.5, waiting, true), 90);
}

TEST(Dispatch, OrdersAreWhatTheySay) {
  const std::vector<double> sizes{30, 10, 50, 20, 40, 60};
  EXPECT_EQ(sizes_in(Order::first_come, sizes), sizes);
  EXPECT_EQ(sizes_in(Order::largest, sizes), (std::vector<double>{60, 50, 40, 30, 20, 10}));
  EXPECT_EQ(sizes_in(Order::smallest, sizes), (std::vector<double>{10, 20, 30, 40, 50, 60}));
  // Two small ones first, but not the smallest, which is the last.
  EXPECT_EQ(sizes_in(Order::adaptive, sizes), (std::vector<double>{20, 30, 60, 50, 40, 10}));
}

TEST(Dispatch, TheOrderChangesWhileItRuns) {
  Dispatch dispatch({device_on(0)}, {{1}}, Order::largest);
  std::vector<std::uint32_t> chunks;
  for (std::uint64_t i = 0; i < 4; ++i)
    chunks.push_back(dispatch.add(chunk_of(i, 10.0 * static_cast<double>(i + 1))));
  EXPECT_EQ(dispatch.next()->chunk, chunks[3]);
  dispatch.set_order(Order::smallest);
  dispatch.staged(chunks[3]);
  EXPECT_EQ(dispatch.next()->chunk, chunks[0]);
}

TEST(Dispatch, OneCopyAtATimeOnASharedLink) {
  Dispatch dispatch({device_on(0), device_on(0)}, {{1}}, Order::first_come);
  const std::uint32_t first = dispatch.add(chunk_of(0, 10));
  dispatch.add(chunk_of(1, 10));
  EXPECT_EQ(dispatch.next()->device, 0);
  EXPECT_FALSE(dispatch.next().has_value());  // the link is taken
  dispatch.staged(first);
  EXPECT_EQ(dispatch.next()->device, 1);  // it has less to do
}

TEST(Dispatch, DevicesGetChunksLate) {
  Dispatch dispatch({device_on(0)}, {{1}}, Order::first_come);
  std::vector<std::uint32_t> chunks;
  for (std::uint64_t i = 0; i < 5; ++i) chunks.push_back(dispatch.add(chunk_of(i, 10)));
  for (int i = 0; i < 3; ++i) dispatch.staged(dispatch.next()->chunk);
  EXPECT_FALSE(dispatch.next().has_value());  // one computes first, and two wait
  dispatch.computed(chunks[0]);
  EXPECT_EQ(dispatch.next()->kind, Kind::leave);
  dispatch.gone(chunks[0]);
  EXPECT_FALSE(dispatch.next().has_value());  // one computes, one waits
  dispatch.computed(chunks[1]);
  EXPECT_EQ(dispatch.next()->chunk, chunks[3]);
}

TEST(Dispatch, TheLastHeadOfADeviceThatHasWorkComesBehindTails) {
  for (const bool is_last : {false, true}) {
    Dispatch dispatch({device_on(0)}, {{1}}, Order::first_come);
    std::vector<std::uint32_t> chunks;
    for (std::uint64_t i = 0; i < (is_last ? 3u : 4u); ++i)
      chunks.push_back(dispatch.add(chunk_of(i, 10)));
    dispatch.close();
    dispatch.staged(dispatch.next()->chunk);
    dispatch.staged(dispatch.next()->chunk);
    dispatch.computed(chunks[0]);
    const auto next = dispatch.next();
    EXPECT_EQ(next->kind, is_last ? Kind::leave : Kind::enter);
    EXPECT_EQ(next->chunk, is_last ? chunks[0] : chunks[2]);
  }
}

TEST(Dispatch, AChunkThatFitsNoDeviceIsRefused) {
  Dispatch dispatch({device_on(0, 100), device_on(0, 200)}, {{1}}, Order::largest);
  EXPECT_NO_THROW(dispatch.add(chunk_of(0, 200)));
  try {
    dispatch.add(chunk_of(1, 201));
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::too_large);
  }
}

/// Random machines, chunks and moments: limits hold, and all chunks pass.
void run_random(std::uint64_t seed) {
  Random random(seed);
  std::vector<StreamDevice> devices;
  const auto links = 1 + random.below(3);
  std::size_t largest = 0;
  for (std::uint64_t d = 0, count = 1 + random.below(4); d < count; ++d) {
    StreamDevice device = device_on(static_cast<int>(random.below(links)), 50 + random.below(300));
    if (random.chance(0.5)) device.links_out = {static_cast<int>(random.below(links))};
    device.copy_engines = 1 + static_cast<int>(random.below(2));
    device.most_chunks = 1 + static_cast<int>(random.below(5));
    largest = std::max(largest, device.memory_bytes);
    devices.push_back(device);
  }
  StreamLimits limits;
  for (std::uint64_t l = 0; l < links; ++l)
    limits.links.push_back(1 + static_cast<int>(random.below(2)));
  if (random.chance(0.3)) limits.all = 1 + static_cast<int>(random.below(4));
  Dispatch dispatch(devices, limits, static_cast<Order>(random.below(4)));
  std::set<std::uint32_t> heading;
  std::set<std::uint32_t> staged;
  std::set<std::uint32_t> leaving;
  std::uint64_t added = 0;
  std::uint64_t passed = 0;
  bool any_lost = false;
  constexpr std::uint64_t all = 200;
  const auto take = [&](std::set<std::uint32_t>& from) {
    auto it = from.begin();
    std::advance(it, static_cast<std::ptrdiff_t>(random.below(from.size())));
    const std::uint32_t chunk = *it;
    from.erase(it);
    return chunk;
  };
  for (int step = 0; passed < all; ++step) {
    ASSERT_LT(step, 100000) << "it doesn't end";
    while (const auto command = dispatch.next()) {
      (command->kind == Kind::enter ? heading : leaving).insert(command->chunk);
      dispatch.validate();
    }
    const bool idle = heading.empty() && staged.empty() && leaving.empty();
    ASSERT_FALSE(idle && dispatch.waiting() > 0) << "chunks wait and nothing goes on";
    const auto what = random.below(5);
    if (added < all && (idle || what == 0)) {
      StreamChunk chunk = chunk_of(added++, static_cast<double>(1 + random.below(largest)));
      try {
        dispatch.add(chunk);
      } catch (const Error& error) {  // it fits devices alone that are lost
        ASSERT_TRUE(any_lost) << error.what();
        ++passed;
      }
      if (added == all) dispatch.close();
    } else if (what == 1 && !heading.empty()) {
      const std::uint32_t chunk = take(heading);
      dispatch.staged(chunk);
      staged.insert(chunk);
    } else if (what == 2 && !staged.empty()) {
      dispatch.computed(take(staged));
    } else if (what == 3 && !leaving.empty()) {
      dispatch.gone(take(leaving));
      ++passed;
    } else if (what == 4 && !heading.empty() && random.chance(0.1)) {
      dispatch.gone(take(heading));  // it failed
      ++passed;
    }
    if (random.chance(0.01)) dispatch.set_order(static_cast<Order>(random.below(4)));
    if (random.chance(0.001)) {
      any_lost = true;
      for (const std::uint32_t chunk :
           dispatch.lose(static_cast<std::uint16_t>(random.below(devices.size())))) {
        dispatch.gone(chunk);
        ++passed;
      }
    }
    dispatch.validate();
  }
}

TEST(Dispatch, RandomEventsKeepTheLimitsAndAllChunksPass) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    run_random(seed);
    if (HasFatalFailure()) return;
  }
}

/// Chunks are let in as they come, leave devices in any order, and results in the order of the
/// source: whatever the sizes, something can always go on.
void run_in_order(std::uint64_t seed) {
  Random random(seed);
  constexpr std::size_t budget = 1000;
  Admission admission(budget, 1 + random.below(20));
  Dispatch dispatch({device_on(0, budget)}, {{1}}, static_cast<Order>(random.below(4)));
  std::vector<std::size_t> sizes(200);
  for (std::size_t& each : sizes)
    each = random.chance(0.1) ? budget : 1 + random.below(budget / (1 + random.below(20)));
  std::map<std::uint32_t, std::uint64_t> numbers;
  std::vector<std::uint32_t> running;
  std::set<std::uint64_t> done;
  std::uint64_t read = 0;
  std::uint64_t delivered = 0;
  while (delivered < sizes.size()) {
    bool happened = false;
    while (read < sizes.size() && admission.fits(sizes[read])) {
      admission.enter(sizes[read]);
      numbers[dispatch.add({read, static_cast<double>(sizes[read]), sizes[read]})] = read;
      ++read;
      happened = true;
    }
    while (const auto command = dispatch.next()) {
      happened = true;
      if (command->kind == Kind::enter) {
        running.push_back(command->chunk);
        continue;
      }
      done.insert(numbers[command->chunk]);
      dispatch.gone(command->chunk);
    }
    if (!running.empty()) {
      const std::size_t i = random.below(running.size());
      dispatch.computed(running[i]);
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
      happened = true;
    }
    while (done.erase(delivered)) admission.leave(sizes[delivered++]);
    ASSERT_TRUE(happened) << "nothing can go on";
    ASSERT_LE(admission.bytes(), budget);
  }
}

TEST(Admission, NoSequenceOfSizesBlocksResultsInOrder) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(seed);
    run_in_order(seed);
    if (HasFatalFailure()) return;
  }
}

TEST(Admission, WhatNeverFitsIsRefusedWithBothSizes) {
  const Admission admission(100, 4);
  EXPECT_NO_THROW(admission.check({3}, 100));
  try {
    admission.check({3}, 101);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::too_large);
    EXPECT_NE(std::string(error.what()).find("chunk 3 needs 101 bytes"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("100"), std::string::npos);
  }
}

}  // namespace
}  // namespace quadriga
