// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/pipeline/read_order_test.cpp: orders of reading beside what the dispatch takes.
#include "pipeline/read_order.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <limits>
#include <string>
#include <vector>

#include "base/random.h"
#include "pipeline/dispatch.h"

namespace quadriga {
namespace {

using Numbers = std::vector<std::uint64_t>;

Numbers all_of(ReadOrder& order) {
  Numbers found;
  while (const auto number = order.next()) found.push_back(*number);
  return found;
}

std::vector<double> random_chunk_sizes(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<double> sizes(count);
  for (double& each : sizes) each = static_cast<double>(random.below(20));
  return sizes;
}

/// As a device takes them that does one at a time, if all wait for it.
Numbers taken_by_dispatch(const std::vector<double>& sizes, Order order) {
  Dispatch dispatch({StreamDevice{}}, {}, order);
  Numbers by_slot(sizes.size());
  for (std::uint64_t i = 0; i < sizes.size(); ++i)
    by_slot[dispatch.add({.number = i, .size = sizes[i]})] = i;
  dispatch.close();
  Numbers found;
  while (const auto command = dispatch.next()) {
    if (command->kind == StreamCommand::Kind::leave) {
      dispatch.gone(command->chunk);
      continue;
    }
    found.push_back(by_slot[command->chunk]);
    dispatch.computed(command->chunk);
  }
  return found;
}

TEST(ReadOrder, IsThatInWhichADeviceTakesChunks) {
  for (const Order order : {Order::adaptive, Order::largest, Order::first_come, Order::smallest})
    for (const std::size_t count : {0, 1, 2, 3, 4, 5, 40})
      for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        const std::vector<double> sizes = random_chunk_sizes(count, seed);
        ReadOrder tested(sizes, order, 1);
        EXPECT_EQ(all_of(tested), taken_by_dispatch(sizes, order))
            << "order " << static_cast<int>(order) << ", " << count << " chunks, seed " << seed;
      }
}

TEST(ReadOrder, BeginsWithTwoSmallOnesADeviceAndKeepsTheSmallestForTheEnd) {
  const std::vector<double> sizes{1, 2, 3, 4, 5, 6, 7, 8};
  ReadOrder two(sizes, Order::adaptive, 2);
  EXPECT_EQ(all_of(two), (Numbers{2, 3, 0, 1, 7, 6, 5, 4}));
  ReadOrder one(sizes, Order::adaptive, 1);
  EXPECT_EQ(all_of(one), (Numbers{1, 2, 7, 6, 5, 4, 3, 0}));
  ReadOrder none(sizes, Order::adaptive, 0);
  EXPECT_EQ(all_of(none), (Numbers{7, 6, 5, 4, 3, 2, 1, 0}));
}

TEST(ReadOrder, GivesEachOnceWhateverChangesMeanwhile) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    const std::size_t count = 1 + random.below(60);
    ReadOrder order(random_chunk_sizes(count, seed), Order::adaptive, random.below(4));
    std::vector<int> given(count, 0);
    std::uint64_t end = count;
    while (const auto number = order.next()) {
      ASSERT_LT(*number, end) << "seed " << seed;
      ++given[*number];
      if (random.below(3) == 0) order.set_order(static_cast<Order>(random.below(4)));
      if (random.below(20) == 0) {
        const std::uint64_t asked = random.below(count + 5);
        order.end_at(asked);
        end = std::min(end, asked);
      }
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      EXPECT_LE(given[i], 1) << "seed " << seed << ", chunk " << i;
      EXPECT_TRUE(given[i] == 1 || i >= end) << "seed " << seed << ", chunk " << i;
    }
    EXPECT_EQ(order.left(), 0u);
  }
}

TEST(ReadOrder, NamesASizeThatIsNone) {
  for (const double wrong :
       {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    const std::vector<double> sizes{1, wrong};
    try {
      const ReadOrder order(sizes, Order::adaptive, 1);
      ADD_FAILURE() << wrong << " is taken for a size";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::invalid_argument);
      EXPECT_NE(std::string(error.what()).find("size of chunk 1"), std::string::npos)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace quadriga
