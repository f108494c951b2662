// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/message_tasks_test.cpp: messages among an engine's tasks: order, ends, memory.
#include "engine/message_tasks.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <array>
#include <cmath>
#include <deque>
#include <latch>
#include <thread>

#include "base/random.h"
#include "engine/start_order.h"
#include "message/matching.h"

namespace quadriga {
namespace {

using message::CallKind;

constexpr double patience = 60;
constexpr std::size_t elements = 2048;  // of a tile: a message of it is large
using Tile = std::array<double, elements>;

/// One rank: an engine, a communicator, tiles.
struct Rank {
  Rank(const std::shared_ptr<message::Endpoint>& endpoint, const std::string& devices,
       std::size_t tiles)
      : engine({.devices = devices}),
        lane(std::make_shared<MessageLane>(message::CommunicatorCore(endpoint))),
        homes(tiles) {
    for (Tile& each : homes) {
      each.fill(0);
      data.push_back(engine.data(each.data(), elements, 1, elements, DType::float64));
    }
  }
  Future message(const MessageCall& call, std::size_t tile, bool sent, bool received,
                 MessageTaskPtr* made = nullptr) {
    MessageTasks& tasks = MessageTasks::of(engine);
    const MessageTaskPtr task =
        tasks.make(lane, call, {MessageShape::of({nullptr, elements, 1, elements, DType::float64})},
                   sent ? 0 : -1, received ? 0 : -1);
    if (made) *made = task;
    return tasks.submit(task, std::span(&data[tile], 1));
  }
  Future send(std::size_t tile, int to, int tag) {
    return message({CallKind::send, to, tag}, tile, true, false);
  }
  Future receive(std::size_t tile, int from, int tag, double seconds = -1) {
    return message({CallKind::recv, from, tag, {}, seconds}, tile, false, true);
  }
  Future allreduce(std::size_t tile) { return message({CallKind::allreduce}, tile, true, true); }

  std::deque<Codelet> codelets;
  Engine engine;
  std::shared_ptr<MessageLane> lane;
  std::vector<Tile> homes;
  std::vector<Data> data;
};

/// What a wait for a task throws.
Errc code_of(Rank& rank, const Future& task) {
  try {
    rank.engine.wait(task, patience);
  } catch (const Error& error) {
    return error.code();
  }
  return Errc::internal;
}

TEST(StartOrder, KeepsSendsOfAReceiverAndReceivesThatCouldTakeTheSame) {
  StartOrder sends(StartOrder::Of::sends);
  const auto a = sends.enter(1, 5), b = sends.enter(1, 6), c = sends.enter(2, 5);
  sends.ready(c);
  sends.ready(b);
  EXPECT_EQ(sends.next(), c);
  EXPECT_EQ(sends.next(), std::nullopt);  // `a` goes first
  sends.ready(a);
  EXPECT_EQ(sends.next(), a);
  EXPECT_EQ(sends.next(), b);
  EXPECT_FALSE(sends.leave(b));

  StartOrder receives(StartOrder::Of::receives);
  const auto d = receives.enter(1, 5), e = receives.enter(1, 6), f = receives.enter(-1, -1),
             g = receives.enter(1, 6);
  receives.ready(e);
  receives.ready(f);
  receives.ready(g);
  EXPECT_EQ(receives.next(), e);
  EXPECT_EQ(receives.next(), std::nullopt);
  EXPECT_TRUE(receives.leave(d));
  EXPECT_EQ(receives.next(), f);
  EXPECT_EQ(receives.next(), g);
  EXPECT_EQ(receives.size(), 0);
  EXPECT_FALSE(receives.ready(d));
}

/// A program for several ranks, and what comes of it one step after the other.
class Program {
 public:
  Program(std::uint64_t seed, int ranks, std::size_t tiles) : ranks_(ranks), tiles_(tiles) {
    Random random(seed);
    const auto any = [&](std::size_t most) { return static_cast<int>(random.below(most)); };
    for (int i = 0; i < 60; ++i) {
      Step step;
      const int kind = any(8);
      step.kind = kind < 3 ? Step::compute : kind < 7 ? Step::message : Step::allreduce;
      step.rank = any(static_cast<std::size_t>(ranks));
      step.other = any(static_cast<std::size_t>(ranks));
      step.from = static_cast<std::size_t>(any(tiles));
      step.to = static_cast<std::size_t>(any(tiles));
      step.tag = any(2);
      step.any_tag = any(4) == 0;
      if (step.kind == Step::compute && step.from == step.to) continue;
      if (step.kind == Step::message && step.rank == step.other && step.from == step.to) continue;
      steps_.push_back(step);
    }
  }
  void submit(Rank& own, int rank) const {
    Codelet& add = own.codelets.emplace_back();
    add.name = "add";
    add.access = {Access::read, Access::update};
    add.cpu = [](const Arguments& arguments) {
      for (std::size_t i = 0; i < elements; ++i) {
        double& into = arguments.operands[1].as<double>()[i];
        into = std::fmod(3 * into + arguments.operands[0].as<double>()[i], 1021);  // exact
      }
    };
    const std::size_t devices = own.engine.machine().devices.size();
    for (const Step& step : steps_) {
      SubmitOptions options;
      options.device = static_cast<DeviceId>((step.from + step.to) % devices);
      if (step.kind == Step::compute && step.rank == rank)
        own.engine.submit(
            add, {{own.data[step.from], Access::read}, {own.data[step.to], Access::update}},
            options);
      if (step.kind == Step::message && step.other == rank)
        own.receive(step.to, step.rank, step.any_tag ? message::any_tag : step.tag);
      if (step.kind == Step::message && step.rank == rank)
        own.send(step.from, step.other, step.tag);
      if (step.kind == Step::allreduce) own.allreduce(step.from);
    }
  }
  /// By rank and tile.
  std::vector<std::vector<double>> model() const {
    std::vector<std::vector<double>> value(static_cast<std::size_t>(ranks_));
    for (std::size_t r = 0; r < value.size(); ++r)
      for (std::size_t t = 0; t < tiles_; ++t) value[r].push_back(first(r, t));
    for (const Step& step : steps_) {
      auto& own = value[static_cast<std::size_t>(step.rank)];
      if (step.kind == Step::compute)
        own[step.to] = std::fmod(3 * own[step.to] + own[step.from], 1021);
      if (step.kind == Step::message)
        value[static_cast<std::size_t>(step.other)][step.to] = own[step.from];
      if (step.kind != Step::allreduce) continue;
      double sum = 0;
      for (const auto& each : value) sum += each[step.from];
      for (auto& each : value) each[step.from] = sum;
    }
    return value;
  }
  static double first(std::size_t rank, std::size_t tile) {
    return static_cast<double>(rank * 10 + tile);
  }

 private:
  struct Step {
    enum Kind { compute, message, allreduce } kind = compute;
    int rank = 0;
    int other = 0;
    std::size_t from = 0;
    std::size_t to = 0;
    int tag = 0;
    bool any_tag = false;
  };
  int ranks_;
  std::size_t tiles_;
  std::vector<Step> steps_;
};

class MessageTasksTest : public testing::TestWithParam<const char*> {};
// Three tiles fit a device, or more.
std::string name_of(const testing::TestParamInfo<const char*>& given) {
  constexpr const char* names[] = {"Host", "Emulated", "RoomyEmulated"};
  return names[given.index];
}
INSTANTIATE_TEST_SUITE_P(On, MessageTasksTest,
                         testing::Values("cpu:2", "emulated:2,memory=56KiB;cpu:1",
                                         "emulated:2,memory=1MiB;cpu:1"),
                         name_of);

TEST_P(MessageTasksTest, RandomProgramsEndAsOneStepAfterTheOther) {
  std::atomic<std::uint64_t> direct{0};
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const int ranks = 2 + static_cast<int>(seed % 3);
    constexpr std::size_t tiles = 6;
    const Program program(seed, ranks, tiles);
    const auto expected = program.model();
    const auto endpoints = message::local_endpoints(ranks);
    std::latch over(ranks);
    std::vector<std::thread> threads;
    for (int r = 0; r < ranks; ++r)
      threads.emplace_back([&, r] {
        const auto index = static_cast<std::size_t>(r);
        Rank own(endpoints[index], GetParam(), tiles);
        for (std::size_t t = 0; t < tiles; ++t) own.homes[t].fill(Program::first(index, t));
        program.submit(own, r);
        EXPECT_NO_THROW(own.engine.wait(patience)) << own.engine.status();
        for (std::size_t t = 0; t < tiles; ++t)
          for (const std::size_t at : {std::size_t{0}, elements - 1})
            EXPECT_EQ(own.homes[t][at], expected[index][t]) << "seed " << seed << ", rank " << r;
        direct += MessageTasks::counted(own.engine).bytes_direct;
        over.arrive_and_wait();
      });
    for (std::thread& each : threads) each.join();
  }
  EXPECT_EQ(direct > 0, GetParam() != std::string("cpu:2"));
}

TEST_P(MessageTasksTest, ReceivesTakeMessagesInTheOrderOfSubmission) {
  const auto endpoints = message::local_endpoints(2);
  Rank one(endpoints[0], GetParam(), 2), two(endpoints[1], GetParam(), 2);
  std::atomic<bool> open{false};
  Codelet gate;
  gate.name = "gate";
  gate.access = {Access::update};
  gate.host_only = true;
  gate.blocks = true;
  gate.cpu = [&](const Arguments&) {
    while (!open) std::this_thread::yield();
  };
  two.engine.submit(gate, {{two.data[0], Access::update}});
  two.receive(0, 0, 7);
  const Future second = two.receive(1, 0, 7);
  one.homes[0].fill(1);
  one.homes[1].fill(2);
  one.send(0, 1, 7);
  one.send(1, 1, 7);
  EXPECT_FALSE(two.engine.done(second));
  open = true;
  two.engine.wait(patience);
  one.engine.wait(patience);
  EXPECT_EQ(two.homes[0][0], 1);
  EXPECT_EQ(two.homes[1][0], 2);
}

TEST_P(MessageTasksTest, FullDevicesPassTheirTilesRoundARing) {
  constexpr int ranks = 3;
  constexpr std::size_t tiles = 12;  // of which a device holds three
  const auto endpoints = message::local_endpoints(ranks);
  std::latch over(ranks);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      Rank own(endpoints[static_cast<std::size_t>(r)], GetParam(), tiles);
      Codelet& more = own.codelets.emplace_back();
      more.name = "more";
      more.access = {Access::update};
      more.cpu = [](const Arguments& arguments) {
        for (std::size_t i = 0; i < elements; ++i) arguments.operands[0].as<double>()[i] += 1;
      };
      // All receives before all sends, and more of them than fit.
      for (int round = 0; round < 3; ++round) {
        for (std::size_t t = 0; t < tiles; ++t)
          own.engine.submit(more, {{own.data[t], Access::update}});
        for (std::size_t t = 0; t < tiles; t += 2)
          own.receive(t, (r + ranks - 1) % ranks, static_cast<int>(t));
        for (std::size_t t = 1; t < tiles; t += 2)
          own.send(t, (r + 1) % ranks, static_cast<int>(t) - 1);
      }
      EXPECT_NO_THROW(own.engine.wait(patience)) << own.engine.status();
      for (std::size_t t = 0; t < tiles; ++t) EXPECT_EQ(own.homes[t][0], 3);
      over.arrive_and_wait();
    });
  for (std::thread& each : threads) each.join();
}

TEST_P(MessageTasksTest, WhatNobodySendsEndsWithTheEngine) {
  const auto endpoints = message::local_endpoints(2);
  {
    Rank own(endpoints[0], GetParam(), 3);
    own.receive(0, 1, 1);
    own.receive(0, 1, 2);  // behind it
    own.allreduce(1);
    own.send(2, 1, 3);  // large: it waits for its receive
  }
  Rank other(endpoints[1], GetParam(), 1);
  EXPECT_EQ(code_of(other, other.allreduce(0)), Errc::cancelled);  // the first rank gave up
}

TEST_P(MessageTasksTest, FailuresKeepTheirKindAndCancelSuccessors) {
  const auto endpoints = message::local_endpoints(2);
  Rank own(endpoints[0], GetParam(), 3);
  const Future late = own.receive(0, 1, 1, 0.05);
  const Future behind = own.send(0, 1, 2);
  EXPECT_EQ(code_of(own, late), Errc::task_failed);
  EXPECT_EQ(code_of(own, behind), Errc::cancelled);
  MessageTaskPtr task;
  const Future withdrawn = own.message({CallKind::recv, 1, 4}, 1, false, true, &task);
  EXPECT_TRUE(MessageTasks::refuse(
      task, std::make_exception_ptr(Error(Errc::cancelled, "nobody wants it"))));
  EXPECT_EQ(code_of(own, withdrawn), Errc::cancelled);
  own.receive(1, 1, 5);
  own.engine.cancel();
  const Future lost = own.receive(1, 1, 6);
  endpoints[1]->close({0, {}, {}});
  EXPECT_EQ(code_of(own, lost), Errc::peer_lost);
  EXPECT_EQ(code_of(own, own.send(2, 1, 6)), Errc::peer_lost);
}

TEST_P(MessageTasksTest, AMessageThatDoesNotFillItsDataFails) {
  const auto endpoints = message::local_endpoints(2);
  Rank own(endpoints[0], GetParam(), 1);
  const Future receive = own.receive(0, 1, 1);
  double few[2] = {};
  message::CommunicatorCore(endpoints[1])
      .send({message::Layout::contiguous(2, message::ElementType::float64),
             reinterpret_cast<std::byte*>(few)},
            0, 1, {patience, {}, {}});
  EXPECT_EQ(code_of(own, receive), Errc::task_failed);
}

TEST(MessageTasks, AreRefusedUnderTheVirtualClock) {
  const auto endpoints = message::local_endpoints(1);
  Engine engine({.devices = "emulated:1,memory=1MiB", .virtual_clock = true});
  const auto lane = std::make_shared<MessageLane>(message::CommunicatorCore(endpoints[0]));
  EXPECT_THROW(MessageTasks::of(engine).make(lane, {CallKind::barrier}, {}, -1, -1), Error);
}

}  // namespace
}  // namespace quadriga
