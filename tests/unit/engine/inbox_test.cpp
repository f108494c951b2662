// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/inbox_test.cpp: messages in their order, and requests that are always answered.
#include "engine/inbox.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <thread>

namespace quadriga {
namespace {

std::exception_ptr broken() { return std::make_exception_ptr(Error(Errc::internal, "it broke")); }

TEST(InboxTest, MessagesComeInTheirOrder) {
  Inbox inbox;
  EXPECT_TRUE(inbox.empty());
  EXPECT_TRUE(inbox.post({.kind = Message::Kind::ready, .id = 1}));
  EXPECT_FALSE(inbox.post({.kind = Message::Kind::kept, .id = 2})) << "one lay there";
  std::vector<Message> taken;
  inbox.take(taken);
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[0].id, 1u);
  EXPECT_EQ(taken[1].kind, Message::Kind::kept);
  EXPECT_TRUE(inbox.empty());
}

TEST(InboxTest, WhoAsksGetsTheAnswer) {
  Inbox inbox;
  int runs = 0;
  const std::function<bool()> work = [&] { return ++runs > 0; };
  const auto good = std::make_shared<DriverRequest>(work);
  const auto bad = std::make_shared<DriverRequest>(work);
  inbox.post(good);
  inbox.post(bad);
  std::thread driver([&] {
    for (const auto& request : inbox.take_requests()) {
      request->run();
      request->answer(runs == 1 ? nullptr : broken());
    }
  });
  good->await();
  EXPECT_THROW(bad->await(), Error);
  driver.join();
  EXPECT_EQ(runs, 2);
}

TEST(InboxTest, WhatIsTriedAgainIsNoNewsAndIsAnsweredWhenAllBreaks) {
  Inbox inbox;
  const std::function<bool()> work = [] { return false; };
  const auto request = std::make_shared<DriverRequest>(work);
  inbox.post(request);
  EXPECT_FALSE(inbox.empty());
  inbox.put_back(inbox.take_requests());
  EXPECT_TRUE(inbox.empty()) << "the driver may sleep";
  EXPECT_FALSE(request->await_for(std::chrono::nanoseconds(1)));
  auto taken = inbox.take_requests();
  ASSERT_EQ(taken.size(), 1u);
  inbox.break_down(broken());
  inbox.put_back(std::move(taken));
  EXPECT_THROW(request->await(), Error);
}

TEST(InboxTest, OnceBrokenNobodyWaits) {
  Inbox inbox;
  const std::function<bool()> work = [] { return true; };
  const auto before = std::make_shared<DriverRequest>(work);
  inbox.post(before);
  inbox.break_down(broken());
  EXPECT_THROW(before->await(), Error);
  EXPECT_THROW(inbox.post(std::make_shared<DriverRequest>(work)), Error);
  EXPECT_THROW(inbox.rethrow_if_broken(), Error);
  EXPECT_TRUE(inbox.is_broken());
}

/// Who takes looks without a lock whether there is anything.
TEST(InboxTest, MessagesAreThereByTheTimeThatALaterRequestIsSeen) {
  constexpr std::uint64_t messages = 2000;
  Inbox inbox;
  std::uint64_t seen = 0;
  const std::function<bool()> work = [&] { return seen == messages; };
  const auto request = std::make_shared<DriverRequest>(work);
  std::thread poster([&] {
    for (std::uint64_t id = 1; id <= messages; ++id)
      inbox.post({.kind = Message::Kind::ready, .id = id});
    inbox.post(request);
  });
  std::vector<Message> taken;
  const auto take = [&] {
    inbox.take(taken);
    for (const Message& message : taken) EXPECT_EQ(message.id, ++seen);
    taken.clear();
  };
  std::vector<std::shared_ptr<DriverRequest>> requests;
  while (requests.empty()) {
    take();
    requests = inbox.take_requests();
  }
  take();
  EXPECT_TRUE(requests.front()->run()) << seen << " messages";
  requests.front()->answer(nullptr);
  EXPECT_TRUE(inbox.empty());
  poster.join();
}

TEST(InboxTest, AMessageEndsTheWait) {
  Inbox inbox;
  std::thread other([&] { inbox.post({.kind = Message::Kind::ready}); });
  inbox.wait_for(std::chrono::seconds(60));
  EXPECT_TRUE(inbox.has_messages());
  inbox.wait_for(std::chrono::seconds(60));  // it is still there
  other.join();
}

}  // namespace
}  // namespace quadriga
