// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/started_collectives_test.cpp: collectives that are started: results beside
// those that are called, disagreements, deadlines, and communicators that end before them.
#include <gtest/gtest.h>
#include <quadriga/error.h>
#include <quadriga/message_collectives.h>

#include <array>
#include <numeric>
#include <optional>
#include <string>

#include "unit/message/public_ranks.h"

namespace quadriga::message::testing {
namespace {

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return std::string(name(error.code())) + ": " + error.what();
  }
  return "nothing was thrown";
}

TEST(StartedCollectives, GiveWhatTheirCallsGiveWhileOthersAreCalled) {
  for (const int ranks : {1, 4}) {
    as_ranks(ranks, [ranks](const Communicator& comm) {
      const auto n = static_cast<std::size_t>(ranks);
      for (const std::size_t count : {std::size_t{3}, std::size_t{5000}}) {
        std::vector<double> own(count, comm.rank() + 1), told(count, comm.rank());
        std::vector<double> sum(count), most(count), all(n * count), whole(n * count);
        std::vector<double> back(count), turned(n * count), given(n * count, comm.rank());
        const std::array requests{ibarrier(comm),
                                  ibcast(comm, told, ranks - 1),
                                  iallreduce(comm, own, sum),
                                  ireduce(comm, own, most, ReduceOperation::max, 0),
                                  iallgather(comm, own, all),
                                  igather(comm, own, whole, 0),
                                  iscatter(comm, given, back, 0),
                                  ialltoall(comm, given, turned)};
        // Of another kind and root than those that are under way.
        EXPECT_EQ(comm.allreduce(1), ranks);
        std::vector<int> same{comm.rank()};
        comm.bcast(same, 0);
        EXPECT_EQ(same[0], 0);
        for (const Status& each : waitall(requests)) EXPECT_EQ(each.source, -1);
        EXPECT_TRUE(requests[2].test());
        EXPECT_FALSE(requests[2].cancel());
        EXPECT_EQ(told, std::vector<double>(count, ranks - 1));
        EXPECT_EQ(sum, std::vector<double>(count, ranks * (ranks + 1) / 2));
        EXPECT_EQ(back, std::vector<double>(count, 0));
        if (comm.rank() == 0) {
          EXPECT_EQ(most, std::vector<double>(count, ranks));
        }
        for (std::size_t i = 0; i < n * count; ++i) {
          const auto rank = static_cast<double>(i / count);
          ASSERT_EQ(all[i], rank + 1);
          ASSERT_EQ(turned[i], rank);
          if (comm.rank() == 0) {
            ASSERT_EQ(whole[i], rank + 1);
          }
        }
      }
      comm.barrier();
    });
  }
}

TEST(StartedCollectives, WhatRanksDisagreeInRaisesOnAll) {
  as_ranks(3, [](const Communicator& comm) {
    std::vector<int> numbers(comm.rank() == 2 ? 3 : 2);
    const std::array wrong{ibcast(comm, numbers, comm.rank() == 1 ? 1 : 0),
                           iallreduce(comm, numbers, numbers),
                           comm.rank() == 0 ? ibarrier(comm) : ibcast(comm, numbers)};
    const Request right = ibarrier(comm);
    for (const Request& each : wrong) {
      const std::string why = error_of([&] { each.wait(); });
      EXPECT_TRUE(why.starts_with("invalid_argument: the ranks' collectives differ:")) << why;
      EXPECT_EQ(error_of([&] { each.test(); }), why);
    }
    right.wait();
    comm.barrier();
  });
}

TEST(StartedCollectives, ADeadlineSaysWhatRanksWaitForAndTheyGoOn) {
  as_ranks(2, [](const Communicator& comm) {
    std::vector<double> numbers(4, comm.rank() + 1);
    if (comm.rank() == 0) {
      const Request early = iallreduce(comm, numbers, numbers);
      EXPECT_FALSE(early.test());
      const std::string why = error_of([&] { early.wait(0.02); });
      EXPECT_TRUE(why.starts_with("deadline: allreduce")) << why;
      EXPECT_NE(why.find("rank 0: "), std::string::npos) << why;
      comm.send(numbers, 1, 7);
      early.wait();
    } else {
      std::vector<double> there(4);
      comm.recv(there, 0, 7);
      iallreduce(comm, numbers, numbers).wait();
    }
    EXPECT_EQ(numbers, std::vector<double>(4, 3));
  });
}

TEST(StartedCollectives, TheEndOfTheirCommunicatorCancelsThemOnAllRanks) {
  std::vector<std::optional<Communicator>> all;
  for (const Communicator& each : local(2, 30)) all.emplace_back(each);
  const Request first = ibarrier(*all[0]);
  const Request later = ibarrier(*all[0]);
  all[0].reset();
  for (const Request& each : {first, later})
    EXPECT_TRUE(error_of([&] { each.wait(); }).starts_with("cancelled: ")) << "on its own rank";
  std::string why = error_of([&] { ibarrier(*all[1]).wait(); });
  // The other may have come to the first barrier before it was dropped, which is all this one asks.
  if (why == "nothing was thrown") why = error_of([&] { ibarrier(*all[1]).wait(); });
  EXPECT_NE(why.find("its communicator was dropped"), std::string::npos) << why;
}

TEST(StartedCollectives, ThoseOfARankThatIsGoneRaise) {
  std::vector<std::optional<Communicator>> all;
  for (const Communicator& each : local(2, 30)) all.emplace_back(each);
  const Request waits = ibarrier(*all[0]);
  all[1]->close();
  EXPECT_TRUE(error_of([&] { waits.wait(); }).starts_with("peer_lost: "));
  const Request next = ibarrier(*all[0]);
  EXPECT_NE(error_of([&] { next.wait(); }), "nothing was thrown");
}

}  // namespace
}  // namespace quadriga::message::testing
