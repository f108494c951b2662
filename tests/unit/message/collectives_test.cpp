// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/collectives_test.cpp: collectives of any sizes, forced in any way, beside
// plain sums; and exchanges whose sides disagree.
#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <functional>
#include <numeric>

#include "base/random.h"
#include "message/communicator.h"
#include "unit/message/endpoints.h"
#include "unit/message/schedule_cases.h"

namespace quadriga::message::testing {
namespace {

using Numbers = std::vector<double>;

std::size_t index(int i) { return static_cast<std::size_t>(i); }

void as_ranks(int count, const std::function<void(CommunicatorCore&)>& run) {
  as_threads(count, [&](const std::shared_ptr<Endpoint>& each) {
    CommunicatorCore communicator(each);
    run(communicator);
  });
}

MessageBuffer part_of(Numbers& data, std::size_t first, std::size_t count) {
  return {Layout::contiguous(static_cast<std::int64_t>(count), ElementType::float64),
          reinterpret_cast<std::byte*>(data.data() + first)};
}

// Whole numbers, so that no order rounds.
double value(int rank, std::size_t i) {
  return static_cast<double>(rank * 1000) + static_cast<double>(i % 97);
}

// All ranks draw the same.
void check_trees(CommunicatorCore& comm, std::uint64_t seed) {
  Random random(seed);
  TreeOptions options = draw_options(random);
  const bool reproducible = std::exchange(options.reproducible, false);
  if (options.segment_bytes > 0) options.segment_bytes *= 100;
  comm.force(options);
  const int ranks = comm.size();
  const std::size_t count = random.below(4000);
  const int root = static_cast<int>(random.below(static_cast<std::uint64_t>(ranks)));
  Numbers mine(count), sum(count), wanted(count);
  for (std::size_t i = 0; i < count; ++i) {
    mine[i] = value(comm.rank(), i);
    for (int rank = 0; rank < ranks; ++rank) wanted[i] += value(rank, i);
  }
  comm.reduce(place_of(mine), place_of(sum), ReduceOperation::sum, root, {}, reproducible);
  ASSERT_EQ(sum, comm.rank() == root ? wanted : Numbers(count));
  Numbers all = mine;
  comm.all_reduce(place_of(all), place_of(all), ReduceOperation::sum, {}, reproducible);
  ASSERT_EQ(all, wanted);
  Numbers told = comm.rank() == root ? wanted : Numbers(count);
  comm.broadcast(place_of(told), root, {});
  ASSERT_EQ(told, wanted);

  std::vector<std::int64_t> counts(index(ranks));
  std::size_t begin = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    counts[index(rank)] = static_cast<std::int64_t>(
        rank == ranks - 1 ? count - begin : random.below(count - begin + 1));
    begin += static_cast<std::size_t>(counts[index(rank)]);
  }
  const auto first = static_cast<std::size_t>(
      std::accumulate(counts.begin(), counts.begin() + comm.rank(), std::int64_t{0}));
  const auto own = static_cast<std::size_t>(counts[index(comm.rank())]);
  Numbers part(own), gathered(count);
  comm.reduce_scatter(place_of(mine), place_of(part), counts, ReduceOperation::sum, {},
                      reproducible);
  ASSERT_TRUE(
      std::equal(part.begin(), part.end(), wanted.begin() + static_cast<std::ptrdiff_t>(first)));
  std::vector<MessageBuffer> places;
  std::size_t at = 0;
  for (const std::int64_t each : counts) {
    places.push_back(part_of(gathered, at, static_cast<std::size_t>(each)));
    at += static_cast<std::size_t>(each);
  }
  comm.all_gather_parts(place_of(part), places, {});
  ASSERT_EQ(gathered, wanted);
}

TEST(Collectives, TreesForcedInAnyWayGiveTheSame) {
  for (const int ranks : {1, 2, 3, 5})
    as_ranks(ranks, [](CommunicatorCore& comm) {
      for (std::uint64_t seed = 0; seed < 25; ++seed) {
        SCOPED_TRACE(seed);
        try {
          check_trees(comm, seed);
        } catch (const std::exception& error) {
          ADD_FAILURE() << error.what();
          return;
        }
      }
    });
}

TEST(Collectives, ExchangesOfAnySizesBetweenAnyPairs) {
  for (const int ranks : {1, 2, 4})
    as_ranks(ranks, [ranks](CommunicatorCore& comm) {
      for (std::uint64_t seed = 0; seed < 25; ++seed) {
        // How much each pair exchanges, in up to two parts.
        Random random(seed);
        std::vector<RankPart> sends, receives;
        std::vector<Numbers> given, got;
        given.reserve(32);
        got.reserve(32);
        for (int from = 0; from < ranks; ++from)
          for (int to = 0; to < ranks; ++to)
            for (std::uint64_t parts = random.below(3); parts > 0; --parts) {
              const std::size_t count = random.below(2) * random.below(3000);
              const double number = static_cast<double>(random.below(1000));
              if (from == comm.rank()) {
                given.emplace_back(count, number);
                sends.push_back({to, place_of(given.back())});
              }
              if (to == comm.rank()) {
                got.emplace_back(count, -number);
                receives.push_back({from, place_of(got.back())});
              }
            }
        const std::vector<Numbers> before = got;
        comm.exchange(CallKind::alltoallw, -1, sends, receives, {});
        for (std::size_t i = 0; i < got.size(); ++i)
          for (std::size_t j = 0; j < got[i].size(); ++j) ASSERT_EQ(got[i][j], -before[i][j]);
      }
    });
}

TEST(Collectives, SidesThatDisagreeRaiseOnAllRanksAndTheCommunicatorStaysUsable) {
  as_ranks(3, [](CommunicatorCore& comm) {
    const bool odd = comm.rank() == 1;
    Numbers a(6, 1), b(6), c(5);
    std::vector<RankPart> sends{{(comm.rank() + 1) % 3, place_of(a)}};
    std::vector<RankPart> receives{{(comm.rank() + 2) % 3, place_of(odd ? c : b)}};
    const std::vector<std::int64_t> counts{2, 2, 2}, others{2, 3, 1};
    Numbers two(2), three(3);
    TreeOptions chain;
    chain.shapes = {TreeShape::chain};
    const std::vector<std::function<void()>> calls{
        [&] { comm.exchange(CallKind::neighbor_alltoall, -1, sends, receives, {}); },
        [&] { comm.exchange(odd ? CallKind::alltoallv : CallKind::alltoallw, -1, {}, {}, {}); },
        [&] { comm.exchange(CallKind::gatherv, odd ? 1 : 0, {}, {}, {}); },
        [&] { comm.exchange(CallKind::gatherv, 3, {}, {}, {}); },
        [&] {
          const std::vector<RankPart> nobody{{odd ? 7 : 0, place_of(a)}};
          comm.exchange(CallKind::alltoallw, -1, odd ? nobody : std::vector<RankPart>{}, {}, {});
        },
        [&] {
          comm.reduce_scatter(place_of(a), place_of(odd ? three : two), odd ? others : counts,
                              ReduceOperation::sum, {});
        },
        [&] {
          const std::vector<MessageBuffer> into{part_of(b, 0, odd ? 1 : 2), part_of(b, 2, 2),
                                                part_of(b, 4, 2)};
          comm.all_gather_parts(place_of(two), into, {});
        },
        [&] { comm.all_reduce(place_of(a), place_of(b), ReduceOperation::sum, {}, odd); },
        [&] {
          comm.force(odd ? chain : TreeOptions{});
          comm.broadcast(place_of(a), 0, {});
        },
    };
    int number = 0;
    for (const auto& call : calls) {
      SCOPED_TRACE(number++);
      EXPECT_EQ(code_of(call), Errc::invalid_argument);
      comm.force({});
      comm.barrier({});
    }
    EXPECT_EQ(code_of([&] { comm.force({{}, -1}); }), Errc::invalid_argument);
  });
}

// Sums that round, in the order of the ranks.
double rounded_sum(int ranks) {
  double sum = 0.1;
  for (int rank = 1; rank < ranks; ++rank) sum += 0.1 * (rank + 1);
  return sum;
}

TEST(Collectives, FewBytesOfTheHostTravelWithTheAgreement) {
  for (const int ranks : {1, 2, 3, 8, 9})
    as_ranks(ranks, [ranks](CommunicatorCore& comm) {
      comm.note_times(true);
      for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{32}}) {
        SCOPED_TRACE(count);
        const auto expect_no_steps = [&] {
          EXPECT_EQ(comm.times()->steps.empty(), ranks <= 8 || count == 0);
          EXPECT_EQ(comm.times()->plan.ends_with("with the agreement"), ranks <= 8);
        };
        const double own = 0.1 * (comm.rank() + 1), due = rounded_sum(ranks);
        const Numbers mine(count, own);
        Numbers in_place = mine, given = mine, got(count);
        comm.all_reduce(place_of(in_place), place_of(in_place), ReduceOperation::sum, {});
        expect_no_steps();
        if (ranks <= 8) EXPECT_EQ(in_place, Numbers(count, due));
        comm.reduce(place_of(given), place_of(got), ReduceOperation::max, ranks - 1, {});
        expect_no_steps();
        EXPECT_EQ(got, Numbers(count, comm.rank() == ranks - 1 ? 0.1 * ranks : 0));
        comm.broadcast(place_of(given), ranks / 2, {});
        expect_no_steps();
        EXPECT_EQ(given, Numbers(count, 0.1 * (ranks / 2 + 1)));
        Numbers all(count * index(ranks));
        given = mine;
        comm.all_gather(place_of(given), place_of(all), {});
        expect_no_steps();
        for (std::size_t i = 0; i < all.size(); ++i)
          EXPECT_EQ(all[i], 0.1 * static_cast<double>(i / count + 1));
      }
    });
}

TEST(Collectives, MoreBytesOrWordsOnTheWayTakeSteps) {
  as_ranks(3, [](CommunicatorCore& comm) {
    comm.note_times(true);
    Numbers many(33, 1), few(2, 1);
    comm.all_reduce(place_of(many), place_of(many), ReduceOperation::sum, {});
    EXPECT_FALSE(comm.times()->steps.empty());
    comm.all_reduce(place_of(few), place_of(few), ReduceOperation::sum, {}, true);
    EXPECT_FALSE(comm.times()->steps.empty());
    TreeOptions chain;
    chain.shapes = {TreeShape::chain};
    comm.force(chain);
    comm.broadcast(place_of(few), 0, {});
    EXPECT_FALSE(comm.times()->steps.empty());
    EXPECT_EQ(many, Numbers(33, 3));
    EXPECT_EQ(few, Numbers(2, 3));
  });
}

TEST(Collectives, FewBytesInStridesArriveInStrides) {
  as_ranks(2, [](CommunicatorCore& comm) {
    Numbers apart{comm.rank() + 1.0, -1, comm.rank() + 10.0, -1}, sum(2);
    const std::vector<std::int64_t> shape{2}, strides{16};
    const MessageBuffer every_second{Layout::view(shape, strides, ElementType::float64),
                                     reinterpret_cast<std::byte*>(apart.data())};
    comm.all_reduce(every_second, place_of(sum), ReduceOperation::sum, {});
    EXPECT_EQ(sum, (Numbers{3, 21}));
    comm.broadcast(every_second, 1, {});
    EXPECT_EQ(apart, (Numbers{2, -1, 11, -1}));
    comm.all_reduce(every_second, every_second, ReduceOperation::prod, {});
    EXPECT_EQ(apart, (Numbers{4, -1, 121, -1}));
  });
}

TEST(Collectives, FewBytesThatDifferRaiseOnAllRanks) {
  for (const int ranks : {2, 5})
    as_ranks(ranks, [](CommunicatorCore& comm) {
      const bool odd = comm.rank() == 1;
      Numbers one(1, 1), two(2, 2), many(40, 3);
      const auto sum = ReduceOperation::sum, most = ReduceOperation::max;
      const std::vector<std::function<void()>> calls{
          [&] { comm.all_reduce(place_of(odd ? one : two), place_of(odd ? one : two), sum, {}); },
          [&] { comm.all_reduce(place_of(odd ? many : two), place_of(odd ? many : two), sum, {}); },
          [&] { comm.all_reduce(place_of(one), place_of(one), odd ? most : sum, {}); },
          [&] { comm.broadcast(place_of(one), odd ? 1 : 0, {}); },
          [&] { comm.broadcast(place_of(odd ? many : one), 1, {}); },
          [&] {
            if (odd) return comm.barrier({});
            comm.broadcast(place_of(one), 0, {});
          },
      };
      for (const auto& call : calls) {
        EXPECT_EQ(code_of(call), Errc::invalid_argument);
        comm.all_reduce(place_of(one), place_of(one), most, {});
      }
      EXPECT_EQ(one, Numbers(1, 1));
      EXPECT_EQ(two, Numbers(2, 2));
      EXPECT_EQ(many, Numbers(40, 3));
    });
}

}  // namespace
}  // namespace quadriga::message::testing
