// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/device/growing_test.cpp: a list that grows while it is read.
#include "device/growing.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

namespace quadriga {
namespace {

TEST(GrowingTest, ElementsStayWhereTheyAre) {
  Growing<int> list;
  EXPECT_EQ(list.add([](int& first) { first = -1; }), 0u);
  const int* const first = &list[0];
  for (int i = 1; i < 5000; ++i) list.add([i](int& each) { each = i; });
  EXPECT_EQ(&list[0], first);
  int expected = -1;
  for (const int each : list) {
    ASSERT_EQ(each, expected);
    expected = expected < 0 ? 1 : expected + 1;
  }
  EXPECT_EQ(expected, 5000);
}

TEST(GrowingTest, WhatCannotBeMadeIsNotAdded) {
  Growing<int> list;
  EXPECT_THROW(list.add([](int&) { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_EQ(list.size(), 0u);
}

TEST(GrowingTest, OthersSeeCompleteElements) {
  constexpr std::size_t all = 20000;
  Growing<std::size_t> list;
  std::jthread reader([&list] {
    for (std::size_t seen = 0; seen < all; seen = list.size())
      for (std::size_t i = seen / 2; i < seen; ++i) ASSERT_EQ(list[i], i + 1);
  });
  for (std::size_t i = 0; i < all; ++i) list.add([i](std::size_t& each) { each = i + 1; });
}

}  // namespace
}  // namespace quadriga
