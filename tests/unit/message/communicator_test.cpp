// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/communicator_test.cpp: collectives of ranks that are threads, and their ends.
#include "message/communicator.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <functional>
#include <numeric>
#include <thread>

#include "unit/message/endpoints.h"

namespace quadriga::message::testing {
namespace {

using Numbers = std::vector<double>;

void as_ranks(int count, const std::function<void(CommunicatorCore&)>& run) {
  as_threads(count, [&](const std::shared_ptr<Endpoint>& each) {
    CommunicatorCore communicator(each);
    run(communicator);
  });
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return std::string(name(error.code())) + ": " + error.what();
  }
  return "";
}

TEST(Communicator, CollectivesOfAnyNumberOfRanks) {
  for (const int ranks : {1, 2, 3, 4, 5, 8}) {
    SCOPED_TRACE(ranks);
    as_ranks(ranks, [ranks](CommunicatorCore& comm) {
      for (const std::size_t count : {0, 1, 7, 3000}) {
        const auto n = static_cast<std::size_t>(ranks);
        for (int root = 0; root < ranks; ++root) {
          Numbers data(count, comm.rank() == root ? root + 1 : 0), sum(count, -1);
          comm.broadcast(place_of(data), root, {});
          ASSERT_EQ(data, Numbers(count, root + 1));
          const Numbers mine(count, comm.rank() + 1);
          Numbers copy = mine;
          comm.reduce(place_of(copy), place_of(sum), ReduceOperation::sum, root, {});
          ASSERT_EQ(copy, mine);
          ASSERT_EQ(sum, Numbers(count, comm.rank() == root ? ranks * (ranks + 1) / 2 : -1));
          Numbers all(comm.rank() == root ? n * count : 0), back(count);
          comm.gather(place_of(copy), place_of(all), root, {});
          for (std::size_t i = 0; i < all.size(); ++i)
            ASSERT_EQ(all[i], static_cast<double>(i / count) + 1);
          comm.scatter(place_of(all), place_of(back), root, {});
          ASSERT_EQ(back, mine);
        }
        Numbers mine(count, comm.rank()), most(count), all(n * count), turned(n * count);
        comm.all_reduce(place_of(mine), place_of(most), ReduceOperation::max, {});
        ASSERT_EQ(most, Numbers(count, ranks - 1));
        comm.all_gather(place_of(mine), place_of(all), {});
        for (std::size_t i = 0; i < all.size(); ++i)
          ASSERT_EQ(all[i], static_cast<double>(i / count));
        for (double& each : all) each += 100 * comm.rank();
        comm.all_to_all(place_of(all), place_of(turned), {});
        for (std::size_t i = 0; i < turned.size(); ++i)
          ASSERT_EQ(turned[i], static_cast<double>(100 * (i / count)) + comm.rank());
        comm.all_to_all(place_of(turned), place_of(turned), {});  // In place: back again.
        ASSERT_EQ(turned, all);
        comm.barrier({});
      }
    });
  }
}

TEST(Communicator, CollectivesOfStridedArrays) {
  as_ranks(3, [](CommunicatorCore& comm) {
    Numbers data(40, comm.rank()), sum(40, -1);
    const Layout other = Layout::vector(20, 1, 2, ElementType::float64);
    const MessageBuffer from{other, reinterpret_cast<std::byte*>(data.data())};
    const MessageBuffer into{other, reinterpret_cast<std::byte*>(sum.data())};
    comm.all_reduce(from, into, ReduceOperation::sum, {});
    for (std::size_t i = 0; i < 40; ++i) ASSERT_EQ(sum[i], i % 2 == 0 ? 3 : -1);
    comm.broadcast(comm.rank() == 1 ? from : into, 1, {});
    for (std::size_t i = 0; i < 40; ++i)
      ASSERT_EQ(comm.rank() == 1 || sum[i] == (i % 2 ? -1 : 1), true);
  });
}

TEST(Communicator, CollectivesThatDisagreeRaiseOnAllRanksAndWorkAfterwards) {
  as_ranks(3, [](CommunicatorCore& comm) {
    Numbers data(5, 1), other(6), all(15);
    const bool odd = comm.rank() == 1;
    const std::vector<std::function<void()>> calls{
        [&] { comm.broadcast(place_of(data), odd ? 1 : 0, {}); },
        [&] { comm.broadcast(place_of(odd ? other : data), 0, {}); },
        [&] { odd ? comm.barrier({}) : comm.broadcast(place_of(data), 0, {}); },
        [&] {
          comm.all_reduce(place_of(data), place_of(data),
                          odd ? ReduceOperation::sum : ReduceOperation::max, {});
        },
        [&] { comm.gather(place_of(data), place_of(odd ? other : all), 1, {}); },
        [&] { comm.broadcast(place_of(data), 7, {}); },
        [&] {
          odd ? comm.refuse(CallKind::bcast, "no array", {})
              : comm.broadcast(place_of(data), 0, {});
        },
    };
    for (const auto& call : calls) {
      const std::string text = error_of(call);
      EXPECT_EQ(text.rfind("invalid_argument: the ranks' collectives differ: rank 0: ", 0), 0)
          << text;
      EXPECT_NE(text.find("; rank 2: "), std::string::npos) << text;
      comm.barrier({});
    }
  });
}

TEST(Communicator, ARankThatGivesUpEndsTheCollectiveOnAll) {
  as_ranks(3, [](CommunicatorCore& comm) {
    Numbers data(100000, 1);
    if (comm.rank() == 2) {
      comm.receive(place_of(data), 1, 1, {});  // Comes after the others have given up.
      EXPECT_NE(error_of([&] { comm.barrier({}); }).find("cancelled: a collective failed on rank"),
                std::string::npos);
      return;
    }
    // Rank 1 has no deadline.
    const std::string text = error_of([&] {
      comm.all_reduce(place_of(data), place_of(data), ReduceOperation::sum,
                      {comm.rank() == 0 ? 0.05 : -1, {}});
    });
    EXPECT_EQ(text.rfind(comm.rank() == 0 ? "deadline" : "cancelled", 0), 0) << text;
    if (comm.rank() == 1) comm.send(place_of(data), 2, 1, {});
  });
}

TEST(Communicator, SplitsByColorAndKey) {
  as_ranks(5, [](CommunicatorCore& comm) {
    auto part = comm.split(comm.rank() % 2, -comm.rank(), {});
    ASSERT_TRUE(part);
    EXPECT_EQ(part->size(), comm.rank() % 2 == 0 ? 3 : 2);
    EXPECT_EQ(part->rank(), part->size() - 1 - comm.rank() / 2);
    Numbers mine(1, comm.rank()), sum(1);
    part->all_reduce(place_of(mine), place_of(sum), ReduceOperation::sum, {});
    EXPECT_EQ(sum[0], comm.rank() % 2 == 0 ? 6 : 4);
    // Messages of one aren't taken by another.
    if (part->rank() == 0) part->send(place_of(mine), 1, 3, {});
    EXPECT_EQ(comm.split(comm.rank() == 4 ? -1 : 0, 0, {}).has_value(), comm.rank() != 4);
    comm.barrier({});
    if (part->rank() == 1) {
      EXPECT_FALSE(comm.probe(any_source, any_tag, std::nullopt));
      EXPECT_EQ(part->receive(place_of(sum), 0, any_tag, {}).tag, 3);
    }
    comm.barrier({});
  });
}

TEST(Communicator, RefusesRanksAndTagsThatDoNotExist) {
  as_ranks(2, [](CommunicatorCore& comm) {
    Numbers data(1);
    EXPECT_EQ(error_of([&] { comm.send(place_of(data), 2, 0, {}); }),
              "invalid_argument: send: destination is 2; expected 0 to 1");
    EXPECT_NE(error_of([&] { comm.send(place_of(data), 0, -1, {}); }), "");
    EXPECT_NE(error_of([&] { comm.receive(place_of(data), -2, 0, {}); }), "");
    EXPECT_NE(error_of([&] { comm.receive(place_of(data), 0, -2, {}); }), "");
  });
}

}  // namespace
}  // namespace quadriga::message::testing
