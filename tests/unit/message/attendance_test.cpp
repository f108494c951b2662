// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/attendance_test.cpp: the service thread is woken for what is large, once, and
// looks after it while no call does.
#include "message/attendance.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "unit/message/endpoints.h"

namespace quadriga::message::testing {
namespace {

using Sleep = ServiceThread::Sleep;

// Rank 0 of two; the test is its calls, its service thread, and rank 1, which does nothing.
class AttendanceTest : public ::testing::Test {
 protected:
  ~AttendanceTest() override { close_all(members_); }

  /// Starts a send that ends once rank 1 has taken it.
  void start_large() {
    Posting posting;
    posting.place = place_of(data_);
    posting.peer = 1;
    posting.operation = CallKind::send;
    posting.group = std::make_shared<Group>(Group{{0, 1}, 0});
    traffic_.start(transfer_of(posting, true));
    ASSERT_TRUE(traffic_.has_large());
  }
  /// Whether the service thread was woken since the last call.
  bool was_woken() const {
    std::uint64_t count = 0;
    return ::read(members_[0].event, &count, sizeof count) == sizeof count;
  }

  const std::shared_ptr<SharedSegment> segment_ = SharedSegment::local(2);
  std::vector<Member> members_{{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), -1, getpid()},
                               {eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), -1, getpid()}};
  std::vector<double> data_ = std::vector<double>(1 << 18);
  Traffic traffic_{*segment_, 0, members_};
  Attendance attendance_{traffic_, Doorbell(segment_->words(0), members_[0].event)};
};

TEST_F(AttendanceTest, WithoutAServiceThreadNothingIsHandedOver) {
  start_large();
  attendance_.enter();
  attendance_.leave();
  EXPECT_EQ(attendance_.handed_over(), 0U);
  EXPECT_FALSE(was_woken());
}

TEST_F(AttendanceTest, WithoutALargeMessageItSleeps) {
  attendance_.begin_service();
  attendance_.hand_over();
  EXPECT_EQ(attendance_.handed_over(), 0U);
  EXPECT_FALSE(was_woken());
  EXPECT_EQ(attendance_.serve(false), Sleep::until_woken);
}

TEST_F(AttendanceTest, WhatIsLargeWakesItOnce) {
  attendance_.begin_service();
  start_large();
  attendance_.hand_over();
  EXPECT_TRUE(was_woken());
  attendance_.hand_over();
  EXPECT_FALSE(was_woken()) << "it looks by itself soon";
  EXPECT_EQ(attendance_.handed_over(), 1U);
  EXPECT_EQ(attendance_.serve(true), Sleep::until_woken);
  attendance_.hand_over();
  EXPECT_TRUE(was_woken()) << "it might sleep";
  EXPECT_EQ(attendance_.handed_over(), 2U);
}

TEST_F(AttendanceTest, NobodyIsWokenWhileAnotherCallAttends) {
  attendance_.begin_service();
  start_large();
  attendance_.enter();
  attendance_.enter();
  attendance_.leave();
  EXPECT_FALSE(was_woken());
  EXPECT_EQ(attendance_.serve(false), Sleep::slice) << "it leaves it to the call";
  attendance_.leave();
  EXPECT_EQ(attendance_.handed_over(), 0U) << "it looks again by itself";
  EXPECT_TRUE(Doorbell(segment_->words(0), -1).armed(Doorbell::service));
}

TEST_F(AttendanceTest, ACallDisarmsTheBellOfTheServiceThread) {
  attendance_.begin_service();
  start_large();
  attendance_.hand_over();
  const Doorbell bell(segment_->words(0), -1);
  EXPECT_TRUE(bell.armed(Doorbell::service));
  attendance_.enter();
  EXPECT_FALSE(bell.armed(Doorbell::service));
  attendance_.leave();
  EXPECT_TRUE(bell.armed(Doorbell::service));
}

}  // namespace
}  // namespace quadriga::message::testing
