// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/open_holds_test.cpp: accesses of the host are its threads', end once, and no
// thread waits for its own.
#include "engine/open_holds.h"

#include <gtest/gtest.h>

#include <utility>

#include "unit/engine/parts.h"

namespace quadriga {
namespace {

class OpenHoldsTest : public testing::Test {
 protected:
  std::shared_ptr<Hold> grant(Access access, std::thread::id owner = acting_thread()) {
    const std::thread::id before = std::exchange(acting_thread(), owner);
    std::shared_ptr<Hold> made = parts_.holds.hold({{&datum_, access}}, never);
    acting_thread() = before;
    return made;
  }
  static std::thread::id another() {
    std::thread::id id;
    std::thread([&] { id = std::this_thread::get_id(); }).join();
    return id;
  }

  IdleParts parts_;
  double number_ = 0;
  Datum& datum_ = parts_.add(&number_, 1);
};

TEST_F(OpenHoldsTest, WhatAThreadHasIsItsOwn) {
  const std::thread::id other = another();
  const auto mine = grant(Access::read);
  EXPECT_EQ(parts_.open.of(acting_thread()).size(), 1U);
  EXPECT_TRUE(parts_.open.of(other).empty());
  const auto theirs = grant(Access::read, other);
  EXPECT_EQ(parts_.open.of(other).size(), 1U);
  EXPECT_EQ(parts_.open.all().size(), 2U);
  parts_.holds.end(*mine);
  EXPECT_TRUE(parts_.open.of(acting_thread()).empty());
  EXPECT_EQ(parts_.open.of(other).size(), 1U);
  parts_.holds.end(*theirs);
}

TEST_F(OpenHoldsTest, OneTakesIt) {
  const auto hold = grant(Access::write);
  EXPECT_TRUE(parts_.open.take(*hold));
  EXPECT_FALSE(parts_.open.take(*hold));
  parts_.open.add(hold);
  parts_.holds.end(*hold);
  EXPECT_FALSE(parts_.open.take(*hold));
}

TEST_F(OpenHoldsTest, RefusesWaitsForTasksThatWaitForTheThreadAlone) {
  double number = 0;
  const TaskRef before = parts_.submit(parts_.add(&number, 1), Access::write);
  const auto hold = grant(Access::write);
  EXPECT_NO_THROW(parts_.open.refuse_own()) << "nobody waits for it";
  const TaskRef behind = parts_.submit(datum_, Access::read);
  EXPECT_EQ(code_of([&] { parts_.open.refuse_own(); }), Errc::unavailable);
  EXPECT_EQ(code_of([&] { parts_.open.refuse_own(&behind); }), Errc::unavailable);
  EXPECT_NO_THROW(parts_.open.refuse_own(&before));

  const std::thread::id self = std::exchange(acting_thread(), another());
  EXPECT_NO_THROW(parts_.open.refuse_own()) << "another's access ends without this thread";
  acting_thread() = self;

  parts_.holds.end(*hold);
  EXPECT_NO_THROW(parts_.open.refuse_own(&behind));
  parts_.end(behind);
  parts_.end(before);
}

}  // namespace
}  // namespace quadriga
