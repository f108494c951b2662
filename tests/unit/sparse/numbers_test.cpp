// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/sparse/numbers_test.cpp: numbers in text, and where they end.
#include "sparse/numbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace quadriga::sparse::testing {
namespace {

TEST(Numbers, AreReadWithWhiteSpaceBetween) {
  std::vector<double> out(8);
  const NumbersRead read = read_numbers(" 1 -2.5\r\n+3e2\t.5 1E-3 inf\n", out);
  EXPECT_EQ(read.count, 6);
  EXPECT_EQ(read.bad_at, -1);
  EXPECT_EQ(std::vector<double>(out.begin(), out.begin() + 5),
            (std::vector<double>{1, -2.5, 300, 0.5, 1e-3}));
  EXPECT_TRUE(std::isinf(out[5]));
}

TEST(Numbers, BeyondTheEndAreCounted) {
  std::vector<double> out(2);
  EXPECT_EQ(read_numbers("1 2 3 4", out).count, 4);
  EXPECT_EQ(out[1], 2);
  EXPECT_EQ(read_numbers("", out).count, 0);
  EXPECT_EQ(read_numbers(" \n ", out).count, 0);
}

TEST(Numbers, SomethingElseIsFound) {
  std::vector<double> out(4);
  EXPECT_EQ(read_numbers("1 2x 3", out).bad_at, 2);
  EXPECT_EQ(read_numbers("1 +-2", out).bad_at, 2);
  EXPECT_EQ(read_numbers("1 +", out).bad_at, 2);
  EXPECT_EQ(read_numbers("1 - 2", out).bad_at, 2);
  EXPECT_EQ(read_numbers("1,2", out).bad_at, 0);
  EXPECT_EQ(read_numbers(std::string_view("1 \0", 3), out).bad_at, 2);
  EXPECT_EQ(read_numbers("1 1e999", out).bad_at, 2);
}

}  // namespace
}  // namespace quadriga::sparse::testing
