// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/schedule/prefetch_test.cpp: what a device fetches ahead, in which order, and when it
// doesn't.
#include "scheduler_parts.h"

namespace quadriga {
namespace {

/// A tile takes 410 us from the host: more than two at a time are no use.
class PrefetchTest : public SchedulerPartsTest {
 protected:
  PrefetchTest() : SchedulerPartsTest(SIZE_MAX, "peer=20GB/s,h2d=10MB/s,d2h=10MB/s") {}
  /// Homes of the tiles that copies on their way to the first device bring, the first in front.
  std::vector<const std::byte*> coming() const {
    std::vector<const std::byte*> homes;
    for (const Instruction& each : instructions_.pending())
      if (const Copy* const copy = std::get_if<Copy>(&each.operation))
        if (each.stream == in) homes.push_back(copy->source);
    return homes;
  }
  void fetch() { prefetch_.fetch(state_.devices[0]); }
};

TEST_F(PrefetchTest, FetchesComeInTheOrderOfThePlan) {
  Datum &a = datum(), &b = datum();
  ready({{&b, Access::read}});
  state_.plan.reposition(ready({{&a, Access::read}}), 0);
  fetch();
  EXPECT_EQ(coming(), (std::vector<const std::byte*>{a.home, b.home}));
}

TEST_F(PrefetchTest, ALinkGetsNoMoreThanItHasRoomFor) {
  for (std::size_t i = 0; i < room; ++i) ready({{&datum(), Access::read}});
  fetch();
  const std::size_t begun = coming().size();
  EXPECT_GT(begun, 0u);
  EXPECT_LT(begun, room);
  EXPECT_FALSE(memory_.transfers().has_token(host_space, 1));
  end_copies(in);
  fetch();
  EXPECT_GT(coming().size(), begun);
}

TEST_F(PrefetchTest, NothingPassesATaskThatWaitsForRoom) {
  PlannedTask& first = ready({{&datum(), Access::read}});
  ready({{&datum(), Access::read}});
  state_.devices[0].make_head(first);
  fetch();
  EXPECT_TRUE(coming().empty()) << "what becomes free is the head's";
  state_.devices[0].drop_head();
  fetch();
  EXPECT_FALSE(coming().empty());
}

TEST_F(PrefetchTest, WhatIsOverwrittenIsNotFetched) {
  Datum &a = datum(), &b = datum();
  ready({{&a, Access::write}});
  ready({{&b, Access::read}});
  fetch();
  EXPECT_EQ(coming(), std::vector<const std::byte*>{b.home});
}

TEST_F(PrefetchTest, WhatItsFirstTaskHasBroughtIsNotFetchedAgain) {
  std::vector<PlannedTask*> tasks;
  for (std::size_t i = 0; i < room; ++i) tasks.push_back(&ready({{&datum(), Access::read}}));
  fetch();
  EXPECT_EQ(launcher_.issue(state_.devices[0], *tasks.back()).kind, Verdict::Kind::issued);
  end_copies(in);
  fetch();
  EXPECT_EQ(coming().size(), room);
}

}  // namespace
}  // namespace quadriga
