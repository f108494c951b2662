// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/started_parts_test.cpp: collectives of parts of any sizes that are started.
#include <gtest/gtest.h>
#include <quadriga/error.h>
#include <quadriga/message_collectives.h>

#include <array>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "unit/message/public_ranks.h"

namespace quadriga::message::testing {
namespace {

using Numbers = std::vector<double>;
using Sizes = std::vector<std::int64_t>;

// What rank `from` has for rank `to`.
double number_of(int from, int to, std::int64_t i) {
  return 1000. * from + 100. * to + static_cast<double>(i);
}

TEST(StartedParts, OfAnySizesArriveWhereTheirCountsSay) {
  for (const std::int64_t scale : {1, 700})
    as_ranks(3, [scale](const Communicator& comm) {
      const int me = comm.rank();
      // Rank r has r rows; the last one first, and a gap before each.
      const Sizes counts{0, scale, 2 * scale}, apart{3 * scale + 2, 2 * scale + 1, 0};
      const auto size = static_cast<std::size_t>(scale);
      Numbers own(static_cast<std::size_t>(me) * size), all(3 * size + 2, -1), dense(3 * size);
      std::iota(own.begin(), own.end(), 10. * me);
      Numbers back(own.size());
      const Request gathered = iallgatherv(comm, own, all, {counts, apart});
      const Request packed = igatherv(comm, own, dense, {counts}, 1);
      waitall(std::array{gathered, packed});
      for (std::int64_t i = 0; i < 3 * scale + 2; ++i) {
        const bool is_gap = i == 2 * scale || i == 3 * scale + 1;
        const std::int64_t due = i < 2 * scale ? 20 + i : 10 + (i - 2 * scale - 1);
        ASSERT_EQ(all[static_cast<std::size_t>(i)], is_gap ? -1 : static_cast<double>(due));
      }
      if (me == 1) {
        EXPECT_EQ(dense.front(), 10);
        EXPECT_EQ(dense.back(), static_cast<double>(20 + 2 * scale - 1));
      }
      iscatterv(comm, dense, {counts}, back, 1).wait();
      EXPECT_EQ(back, own);
    });
}

TEST(StartedParts, EachRankGetsItsElementsOfEachOther) {
  as_ranks(3, [](const Communicator& comm) {
    const int me = comm.rank();
    // From rank i to rank k go i + k elements.
    Sizes leaving, arriving;
    Numbers out, in;
    for (int other = 0; other < 3; ++other) {
      leaving.push_back(me + other);
      arriving.push_back(other + me);
      for (int i = 0; i < me + other; ++i) out.push_back(number_of(me, other, i));
    }
    in.resize(out.size());
    ialltoallv(comm, out, {leaving}, in, {arriving}).wait();
    std::size_t at = 0;
    for (int other = 0; other < 3; ++other)
      for (int i = 0; i < me + other; ++i) EXPECT_EQ(in[at++], number_of(other, me, i));
  });
}

TEST(StartedParts, ListsTakeAnyLayoutsAndNeighboursSomeRanks) {
  as_ranks(3, [](const Communicator& comm) {
    const int right = (comm.rank() + 1) % 3, left = (comm.rank() + 2) % 3;
    const Numbers row(4, comm.rank());
    Numbers matrix(16, -1);
    // A row becomes the neighbour's column.
    const Layout column = Layout::vector(4, 1, 4, ElementType::float64);
    const std::array sends{SendPart{row, right}};
    const std::array receives{ReceivePart{{matrix.data(), column}, left}};
    ialltoallw(comm, sends, receives).wait();
    for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(matrix[i], i % 4 == 0 ? left : -1);
    // Two for the same rank, in order; rank 2 has no neighbours.
    const Numbers one(1, comm.rank()), two(2, 10 + comm.rank());
    Numbers got_one(1), got_two(2);
    if (comm.rank() == 2) return ineighbor_alltoall(comm, {}, {}).wait(), void();
    const int other = 1 - comm.rank();
    const std::array given{SendPart{one, other}, SendPart{two, other}};
    const std::array taken{ReceivePart{got_one, other}, ReceivePart{got_two, other}};
    ineighbor_alltoall(comm, given, taken).wait();
    EXPECT_EQ(got_one, Numbers(1, other));
    EXPECT_EQ(got_two, Numbers(2, 10 + other));
  });
}

TEST(StartedParts, SumsAreScattered) {
  as_ranks(3, [](const Communicator& comm) {
    const Sizes counts{1, 0, 3};
    Numbers own{1, 2, 3, 4},
        part(static_cast<std::size_t>(counts[static_cast<std::size_t>(comm.rank())]));
    ireduce_scatter(comm, own, part, counts).wait();
    const std::array<Numbers, 3> due{Numbers{3}, Numbers{}, Numbers{6, 9, 12}};
    EXPECT_EQ(part, due[static_cast<std::size_t>(comm.rank())]);
  });
}

std::string failure_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(StartedParts, WhatIsWrongOnOneRankRaisesOnAll) {
  as_ranks(2, [](const Communicator& comm) {
    const bool first = comm.rank() == 0;
    Numbers own(2), all(4);
    const Sizes right{2, 2}, long_by_one{2, 3}, few{4}, below{-1, 2};
    const std::vector<std::pair<Sizes, std::string>> wrong{
        {long_by_one, "rank 1 has 3 elements from element 2 on; expected some of 4"},
        {few, "1 counts, 1 displacements; expected 2"},
        {below, "rank 0 has -1 elements from element 0 on; expected some of 4"}};
    for (const auto& [counts, why] : wrong) {
      const std::string said =
          failure_of([&] { iallgatherv(comm, own, all, {first ? counts : right}).wait(); });
      EXPECT_NE(said.find(why), std::string::npos) << said;
    }
    // Only the pair knows that they differ.
    const std::string said = failure_of([&] {
      const Sizes out{1, 1}, in{1, first ? 1 : 2};
      ialltoallv(comm, own, {out}, all, {in}).wait();
    });
    EXPECT_NE(said.find("gives 1 elements in 1 parts, expected are 2"), std::string::npos) << said;
    const std::string strided = failure_of([&] {
      const Layout spread = Layout::vector(2, 1, 2, ElementType::float64);
      iscatterv(comm, {all.data(), spread}, {Sizes{1, 1}},
                {own.data(), Layout(ElementType::float64)})
          .wait();
    });
    EXPECT_NE(strided.find("expected elements of one type that lie together"), std::string::npos)
        << strided;
    comm.barrier();
  });
}

}  // namespace
}  // namespace quadriga::message::testing
