// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/commuting_test.cpp: all exclusive operands at once or none, and whoever is
// blocked is returned by who let go.
#include "engine/commuting.h"

#include <gtest/gtest.h>

#include <array>

#include "graph/graph.h"

namespace quadriga {
namespace {

class CommutingTest : public testing::Test {
 protected:
  /// Commutes on these data; reads what follows -1.
  Task& task(std::initializer_list<int> data) {
    Task& made = tasks_[next_++];
    Access access = Access::commute;
    for (const int number : data) {
      if (number < 0) {
        access = Access::read;
        continue;
      }
      OperandSlot& slot = slots_[used_++];
      slot.datum = &data_[static_cast<std::size_t>(number)];
      slot.access = access;
      if (made.operand_count++ == 0) made.operands = &slot;
    }
    return made;
  }

  std::array<Datum, 4> data_;
  std::array<Task, 4> tasks_;
  std::array<OperandSlot, 16> slots_;
  std::size_t next_ = 0;
  std::size_t used_ = 0;
  Commuting commuting_;
};

TEST_F(CommutingTest, WhoCannotHaveAllHoldsNone) {
  Task& first = task({0, 1});
  Task& second = task({2, 1});
  Task& third = task({2});
  EXPECT_TRUE(commuting_.take(first));
  EXPECT_FALSE(commuting_.take(second));
  EXPECT_TRUE(commuting_.take(third)) << "the second holds nothing";
  EXPECT_EQ(commuting_.release(first), std::vector<Task*>{&second});
  EXPECT_FALSE(commuting_.take(second)) << "the third still has it";
  EXPECT_EQ(commuting_.release(third), std::vector<Task*>{&second});
  EXPECT_TRUE(commuting_.take(second));
  EXPECT_TRUE(commuting_.release(second).empty());
}

TEST_F(CommutingTest, ReadersExcludeNobody) {
  Task& first = task({-1, 0});
  Task& second = task({0});
  EXPECT_TRUE(commuting_.take(first));
  EXPECT_TRUE(commuting_.take(second));
}

}  // namespace
}  // namespace quadriga
