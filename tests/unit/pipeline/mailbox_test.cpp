// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/pipeline/mailbox_test.cpp: who drives, and that no mail is forgotten.
#include "pipeline/mailbox.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>
#include <vector>

namespace quadriga {
namespace {

constexpr double soon = 0.01;    // seconds in which nothing comes
constexpr double never_ = 60.0;  // seconds after which something is lost

struct MailboxTest : testing::Test {
  Engine engine{{.devices = "cpu:1"}};
  Mailbox mail{engine};

  std::size_t take() {
    std::vector<Mail> taken;
    mail.take(taken);
    return taken.size();
  }
};

TEST_F(MailboxTest, OneThreadDrives) {
  EXPECT_TRUE(mail.claim());
  EXPECT_FALSE(mail.claim());
  mail.release();
  EXPECT_TRUE(mail.claim());
}

TEST_F(MailboxTest, WhoWaitsLeavesMailToTheOneThatDrives) {
  ASSERT_TRUE(mail.claim());
  mail.post({});
  mail.post_more({});
  EXPECT_FALSE(mail.wait(Deadline(soon)));
  EXPECT_EQ(take(), 2u);
}

TEST_F(MailboxTest, MailThatCameMeanwhileIsThereAfterTheRelease) {
  ASSERT_TRUE(mail.claim());
  mail.post({});
  mail.release();
  EXPECT_FALSE(mail.is_empty());
  EXPECT_TRUE(mail.wait(Deadline(never_)));
}

TEST_F(MailboxTest, AWakeReachesTheOneThatWaitsBesideMailThatWasLeft) {
  ASSERT_TRUE(mail.claim());
  auto waiting = std::async(std::launch::async, [&] { return mail.wait(Deadline(never_)); });
  mail.leave({});  // by a body that found another one driving
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  mail.release();
  mail.wake();
  EXPECT_TRUE(waiting.get());
}

TEST_F(MailboxTest, MailThatComesDuringANapIsThereAfterIt) {
  mail.post_more({});
  EXPECT_EQ(take(), 1u);
  auto waiting = std::async(std::launch::async, [&] { return mail.wait(Deadline(never_)); });
  mail.post_more({});
  EXPECT_TRUE(waiting.get());
  EXPECT_EQ(take(), 1u);
  EXPECT_FALSE(mail.wait(Deadline(soon)));
  mail.post({});
  EXPECT_TRUE(mail.wait(Deadline(never_)));
}

TEST_F(MailboxTest, LazyMailWaitsForTheDriversThatAreExpected) {
  mail.expect_drivers(true);
  mail.post_lazily({});
  mail.post_more({});
  EXPECT_FALSE(mail.wait(Deadline(soon)));
  EXPECT_FALSE(mail.is_empty());  // for the one that ends a body
  mail.expect_drivers(false);
  EXPECT_TRUE(mail.wait(Deadline(never_)));
}

TEST_F(MailboxTest, TheEndThatWasExpectedIsSeenByWhoDroveMeanwhile) {
  ASSERT_TRUE(mail.claim());
  mail.expect_drivers(true);
  mail.leave({});  // by the body, which finds that another one drives
  mail.release();
  EXPECT_TRUE(mail.wait(Deadline(soon)));
}

TEST_F(MailboxTest, OtherMailWakesBehindLazyMail) {
  mail.expect_drivers(true);
  mail.post_lazily({});
  auto waiting = std::async(std::launch::async, [&] { return mail.wait(Deadline(never_)); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  mail.post({});
  EXPECT_TRUE(waiting.get());
  EXPECT_EQ(take(), 2u);
}

TEST_F(MailboxTest, LazyMailWakesWhereNoDriverIsExpected) {
  auto waiting = std::async(std::launch::async, [&] { return mail.wait(Deadline(never_)); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  mail.post_lazily({});
  EXPECT_TRUE(waiting.get());
}

TEST_F(MailboxTest, NoMailIsForgottenWhereAllWhoLeaveItMayDrive) {
  constexpr int threads = 3;
  constexpr int each = 2000;
  std::atomic<int> seen{0};
  std::vector<Mail> taken;  // the driver's
  const auto drive = [&] {
    while (!mail.is_empty() && mail.claim()) {
      taken.clear();
      mail.take(taken);
      seen += static_cast<int>(taken.size());
      mail.release();
    }
  };
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&] {
      for (int i = 0; i < each; ++i) {
        mail.leave({});
        drive();
      }
    });
  for (std::thread& thread : all) thread.join();
  EXPECT_EQ(seen.load(), threads * each);
  EXPECT_TRUE(mail.is_empty());
}

}  // namespace
}  // namespace quadriga
