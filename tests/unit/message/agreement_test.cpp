// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/agreement_test.cpp: all that ask get the answer of the one that asked first.
#include "message/wire/agreement.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <barrier>
#include <random>
#include <set>
#include <thread>

namespace quadriga::message {
namespace {

RankSet set_of(std::initializer_list<int> ranks) {
  RankSet set;
  for (const int rank : ranks) set.add(rank);
  return set;
}

TEST(Agreement, TheFirstProposalIsEverybodysAnswer) {
  const auto segment = SharedSegment::local(3);
  const RankSet first = set_of({0, 2});
  EXPECT_EQ(agree(*segment, 2, 77, first), first);
  EXPECT_EQ(agree(*segment, 0, 77, set_of({0, 1, 2})), first);
  EXPECT_EQ(agree(*segment, 0, 78, set_of({0})), set_of({0}));
}

TEST(Agreement, RanksOfAllWordsAreKept) {
  const auto segment = SharedSegment::local(most_ranks);
  const RankSet odd = set_of({1, 63, 65, 127, 129, 191, 255});
  agree(*segment, most_ranks - 1, 5, odd);
  const RankSet answer = agree(*segment, 0, 5, set_of({0}));
  for (int rank = 0; rank < most_ranks; ++rank) EXPECT_EQ(answer.has(rank), odd.has(rank)) << rank;
}

// Threads ask the same questions in orders of their own, some of which share a place at first.
TEST(Agreement, AllAtOnceGetOneAnswer) {
  constexpr int ranks = 4;
  constexpr std::uint64_t questions = 60;
  const auto segment = SharedSegment::local(ranks);
  std::vector<std::vector<RankSet>> answers(ranks, std::vector<RankSet>(questions));
  std::barrier ready(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      std::vector<std::uint64_t> order(questions);
      for (std::uint64_t i = 0; i < questions; ++i) order[i] = i;
      std::mt19937 random(static_cast<unsigned>(rank));
      std::shuffle(order.begin() + questions / 2, order.end(), random);
      ready.arrive_and_wait();
      for (const std::uint64_t i : order)
        answers[static_cast<std::size_t>(rank)][i] =
            agree(*segment, rank, 1 + i * most_agreements / 2, set_of({rank}));
    });
  for (std::thread& each : threads) each.join();
  for (int rank = 1; rank < ranks; ++rank)
    EXPECT_EQ(answers[static_cast<std::size_t>(rank)], answers[0]) << "rank " << rank;
}

TEST(Agreement, WhatIsFullOrWrongIsRefused) {
  const auto segment = SharedSegment::local(2);
  for (std::uint64_t key = 1; key <= most_agreements; ++key) agree(*segment, 0, key, set_of({0}));
  EXPECT_EQ(agree(*segment, 1, 9, set_of({1})), set_of({0}));
  try {
    agree(*segment, 0, most_agreements + 1, set_of({0}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::unavailable);
    EXPECT_NE(std::string(error.what()).find("256 times"), std::string::npos);
  }
  segment->agreement(9).chosen = 3;
  try {
    agree(*segment, 0, 9, set_of({0}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::peer_lost);
  }
}

}  // namespace
}  // namespace quadriga::message
