// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/device/meeting_test.cpp: who comes last works for all, and who waits in vain gives up.
#include "device/meeting.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <stdexcept>
#include <string>
#include <thread>

namespace quadriga {
namespace {

/// Each member comes on a thread of its own; what each was left with: "" or an error's text.
std::vector<std::string> come(Meeting& meeting, std::size_t members, const Meeting::Work& work) {
  std::vector<std::string> ends(members);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < members; ++i)
    threads.emplace_back([&, i] {
      try {
        meeting.join(i, {{}, static_cast<int>(10 + i)}, work);
      } catch (const std::exception& error) {
        ends[i] = error.what();
      }
    });
  for (std::thread& each : threads) each.join();
  return ends;
}

TEST(Meeting, OneWorksWithWhatAllBrought) {
  const std::atomic<bool> broken{false};
  for (std::size_t members = 1; members <= 4; ++members) {
    Meeting meeting(members, broken);
    int worked = 0;
    const auto ends = come(meeting, members, [&](std::span<const Meeting::Member> all) {
      ++worked;
      ASSERT_EQ(all.size(), members);
      for (std::size_t i = 0; i < members; ++i) EXPECT_EQ(all[i].device, static_cast<int>(10 + i));
    });
    EXPECT_EQ(ends, std::vector<std::string>(members));
    EXPECT_EQ(worked, 1);
    EXPECT_TRUE(meeting.has_ended());
  }
}

TEST(Meeting, AllFailAsTheWorkDoes) {
  const std::atomic<bool> broken{false};
  Meeting meeting(3, broken);
  const auto ends = come(
      meeting, 3, [](std::span<const Meeting::Member>) { throw std::runtime_error("no room"); });
  EXPECT_EQ(ends, std::vector<std::string>(3, "no room"));
}

TEST(Meeting, NobodyWaitsForWhoNeverComes) {
  std::atomic<bool> broken{false};
  Meeting meeting(2, broken);
  bool worked = false;
  const auto work = [&](std::span<const Meeting::Member>) { worked = true; };
  std::thread breaks([&] { broken = true; });
  EXPECT_THROW(meeting.join(0, {}, work), Error);
  breaks.join();
  EXPECT_FALSE(meeting.has_ended());
  EXPECT_THROW(meeting.join(1, {}, work), Error) << "the other has gone";
  EXPECT_FALSE(worked);
  EXPECT_TRUE(meeting.has_ended());
}

}  // namespace
}  // namespace quadriga
