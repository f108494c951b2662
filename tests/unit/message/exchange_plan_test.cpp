// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/exchange_plan_test.cpp: exchanges that are set up once, and how they end.
#include <gtest/gtest.h>
#include <quadriga/error.h>
#include <quadriga/message.h>

#include <array>
#include <memory>
#include <numeric>
#include <thread>

#include "message/communicator_common.h"
#include "unit/message/endpoints.h"
#include "unit/message/processes.h"
#include "unit/message/public_ranks.h"

namespace quadriga::message::testing {
namespace {

// Each rank sends the last column of its matrix to the right, and the first one to the left.
class Halo {
 public:
  Halo(const Communicator& comm, std::int64_t rows)
      : comm_(comm), rows_(rows), data_(static_cast<std::size_t>(4 * rows + 4)) {
    const Layout column = Layout::vector(rows, 1, 4, ElementType::float64);
    const int right = (comm.rank() + 1) % comm.size();
    const int left = (comm.rank() + comm.size() - 1) % comm.size();
    const std::array sends{PlannedSend{{&data_[2], column}, right, 1},
                           PlannedSend{{&data_[1], column}, left, 2}};
    const std::array receives{PlannedReceive{{&data_[0], column}, left, 1},
                              PlannedReceive{{&data_[3], column}, right, 2}};
    plan = comm.plan(sends, receives);
  }
  void fill(int round) {
    for (std::size_t i = 0; i < data_.size(); ++i) data_[i] = value(comm_.rank(), i, round);
  }
  bool is_right(int round) const {
    const int right = (comm_.rank() + 1) % comm_.size();
    const int left = (comm_.rank() + comm_.size() - 1) % comm_.size();
    for (std::size_t i = 0; i < static_cast<std::size_t>(4 * rows_); i += 4)
      if (data_[i] != value(left, i + 2, round) || data_[i + 3] != value(right, i + 1, round))
        return false;
    return true;
  }
  ExchangePlan plan;

 private:
  static double value(int rank, std::size_t index, int round) {
    return rank + 1000.0 * round + 1e6 * static_cast<double>(index);
  }
  const Communicator& comm_;
  const std::int64_t rows_;
  std::vector<double> data_;
};

TEST(ExchangePlan, HalosOfAnyNumberOfRanks) {
  for (const int ranks : {1, 2, 3, 5}) {
    as_ranks(ranks, [](const Communicator& comm) {
      for (const std::int64_t rows : {0, 3, 5000}) {
        Halo halo(comm, rows);
        for (int round = 0; round < 20; ++round) {
          halo.fill(round);
          halo.plan.start();
          halo.plan.wait();
          ASSERT_TRUE(halo.is_right(round)) << rows << " rows, round " << round;
        }
        const auto received = halo.plan.received();
        ASSERT_EQ(received.size(), 2U);
        EXPECT_EQ(received[0].bytes, 8 * static_cast<std::size_t>(rows));
        EXPECT_EQ(received[1].tag, 2);
        EXPECT_TRUE(halo.plan.test());
        EXPECT_FALSE(halo.plan.cancel());
      }
      comm.barrier();
    });
  }
}

TEST(ExchangePlan, BetweenProcesses) {
  const std::string address = file_address(), token = new_token();
  const auto states = as_processes(3, [&](int rank) {
    const Communicator comm = join(address, rank, 3, token, {20, 20});
    for (const std::int64_t rows : {100, 20'000}) {
      Halo halo(comm, rows);
      for (int round = 0; round < 50; ++round) {
        halo.fill(round);
        halo.plan.start();
        while (round % 2 == 1 && !halo.plan.test()) std::this_thread::yield();
        halo.plan.wait();
        expect(halo.is_right(round), "another content");
      }
    }
    comm.barrier();
  });
  EXPECT_EQ(states, std::vector<int>(3, 0));
}

Errc code_of_wait(const ExchangePlan& plan, Seconds deadline = {}) {
  return code_of([&] { plan.wait(deadline); });
}

TEST(ExchangePlan, StartsOnlyOnceItHasEnded) {
  as_ranks(2, [](const Communicator& comm) {
    const int other = 1 - comm.rank();
    std::vector<double> in(3), out(3, comm.rank());
    const std::array receives{PlannedReceive{in, other, 5}};
    const ExchangePlan plan = comm.plan({}, receives);
    plan.start();
    EXPECT_FALSE(plan.test());
    EXPECT_EQ(code_of([&] { plan.start(); }), Errc::invalid_argument);
    EXPECT_EQ(code_of_wait(plan, 0.001), Errc::deadline);
    comm.barrier();
    comm.send(out, other, 5);  // It goes on.
    plan.wait();
    EXPECT_EQ(in, std::vector<double>(3, other));
    comm.barrier();
    plan.start();
    EXPECT_TRUE(plan.cancel());
    EXPECT_EQ(code_of_wait(plan), Errc::cancelled);
    comm.barrier();
    plan.start();  // Usable again.
    comm.send(out, other, 5);
    plan.wait();
    ExchangePlan().wait();  // Of nothing.
    comm.plan({}, {}).start();
    comm.barrier();
  });
}

TEST(ExchangePlan, OneThatFailsEndsAll) {
  as_ranks(3, [](const Communicator& comm) {
    const auto pair = comm.Split(comm.rank() == 2 ? 1 : 0);
    if (comm.rank() == 2) {
      comm.barrier();
      comm.close();
      return;
    }
    std::vector<double> in(3), never(3), out(100'000);
    const int other = 1 - comm.rank();
    // The second receive would wait for ever, so would the send.
    const std::array receives{PlannedReceive{in, 2, 1}, PlannedReceive{never, other, 1}};
    const std::array sends{PlannedSend{out, other, 3}};
    const ExchangePlan plan = comm.plan(sends, receives);
    plan.start();
    comm.barrier();
    EXPECT_EQ(code_of_wait(plan), Errc::peer_lost);
    EXPECT_EQ(code_of([&] { plan.test(); }), Errc::peer_lost);
    EXPECT_FALSE(plan.cancel());
    EXPECT_EQ(plan.received()[1].bytes, 0U);
    pair->barrier();
    EXPECT_FALSE(comm.iprobe(other, 3)) << "the send was withdrawn";
    pair->barrier();
  });
}

TEST(ExchangePlan, RefusesWhatCanNeverWork) {
  as_ranks(2, [](const Communicator& comm) {
    std::vector<double> data(4);
    const std::array sends{PlannedSend{data, 2, 0}};
    EXPECT_EQ(code_of([&] { comm.plan(sends, {}); }), Errc::invalid_argument);
    const std::array tags{PlannedSend{data, 0, any_tag}};
    EXPECT_EQ(code_of([&] { comm.plan(tags, {}); }), Errc::invalid_argument);
    const Layout twice = Layout::vector(2, 2, 1, ElementType::float64);
    const std::array overlap{PlannedReceive{{data.data(), twice}, 0}};
    EXPECT_EQ(code_of([&] { comm.plan({}, overlap); }), Errc::invalid_argument);
  });
}

TEST(ExchangePlan, WhatItKeepsLivesAsLongAsItIsUnderWay) {
  const Endpoints both = local_endpoints(2);
  const CommunicatorCore first(both[0]), second(both[1]);
  std::vector<double> in(2), out{1, 2};
  std::weak_ptr<int> seen;
  {
    const auto keep = std::make_shared<int>(0);
    seen = keep;
    const auto plan = second.plan({}, {{place_of(in), 0, 1}}, keep);
    plan.start();
  }
  EXPECT_FALSE(seen.expired());
  first.send(place_of(out), 1, 1, {});
  EXPECT_FALSE(second.probe(0, 1, std::nullopt));  // Received: the plan is gone, its start isn't.
  EXPECT_EQ(in, out);
  EXPECT_TRUE(seen.expired());
}

}  // namespace
}  // namespace quadriga::message::testing
