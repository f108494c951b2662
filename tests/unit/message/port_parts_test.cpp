// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/port_parts_test.cpp: a port's parts one by one, on a backend without threads,
// which runs what is queued when it is asked what has ended.
#include <gtest/gtest.h>
#include <quadriga/error.h>
#include <quadriga/machine.h>

#include <stdexcept>
#include <vector>

#include "message/port_blocks.h"
#include "message/port_machine.h"
#include "message/port_packing.h"
#include "message/ports.h"
#include "message/program_streams.h"
#include "polled_backend.h"

namespace quadriga::message::testing {
namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;

/// The parts of a port of one device of 16 MiB.
struct Parts {
  PolledBackend backend{with_own_routes(Machine::parse("emulated:1,memory=16MiB"))};
  PortOperations operations{backend};
  PortMemory memory{backend, operations};
};

Kernel adds(std::vector<int>& to, int value) {
  return [&to, value](const Arguments&) { to.push_back(value); };
}

TEST(PortOperations, ATicketHasEndedOnceItsLaneHasComeSoFar) {
  Parts parts;
  std::vector<int> ran;
  const PortTicket first = parts.operations.launch(0, PortLane::in, adds(ran, 1));
  const PortTicket second = parts.operations.launch(0, PortLane::in, adds(ran, 2));
  const PortTicket beside = parts.operations.launch(0, PortLane::out, adds(ran, 3));
  EXPECT_EQ(first.stream, second.stream);
  EXPECT_NE(first.stream, beside.stream);
  EXPECT_TRUE(ran.empty()) << "nobody asked yet";
  EXPECT_TRUE(parts.operations.has_ended(second));
  EXPECT_EQ(ran, (std::vector{1, 2}));
  EXPECT_TRUE(parts.operations.has_ended(first));
  parts.operations.finish_lanes();
  EXPECT_EQ(ran, (std::vector{1, 2, 3}));
  EXPECT_TRUE(parts.operations.has_ended({})) << "ticket 0";
}

TEST(PortOperations, WhatEndedAnOperationIsToldOnceAndFinishKeepsItToItself) {
  Parts parts;
  const auto fails = [](const Arguments&) { throw std::runtime_error("a fault"); };
  const PortTicket asked = parts.operations.launch(0, PortLane::in, fails);
  EXPECT_THROW(parts.operations.has_ended(asked), std::runtime_error);
  EXPECT_TRUE(parts.operations.has_ended(asked));
  const PortTicket waited = parts.operations.launch(0, PortLane::in, fails);
  parts.operations.finish(waited);
  EXPECT_TRUE(parts.operations.has_ended(waited));
}

TEST(PortOperations, AStreamThatFollowsALaneHasItsEndBehindTheLanes) {
  Parts parts;
  std::vector<int> ran;
  const StreamId stream = parts.operations.open(0);
  parts.operations.follow(stream, 0, PortLane::in);
  EXPECT_FALSE(parts.operations.last(stream)) << "the lane holds nothing";
  parts.operations.launch(0, PortLane::in, adds(ran, 1));
  parts.operations.follow(stream, 0, PortLane::in);
  const PortTicket last = parts.operations.last(stream);
  EXPECT_EQ(last.stream, stream);
  EXPECT_TRUE(last);
  EXPECT_TRUE(parts.operations.has_ended(last));
  EXPECT_EQ(ran, std::vector{1});
}

TEST(PortMemory, IsFreedOnceWhatTheLanesHoldHasEnded) {
  Parts parts;
  std::byte* const memory = parts.memory.allocate(0, 64);
  std::vector<int> ran;
  parts.operations.launch(0, PortLane::in, [&](const Arguments&) {
    *memory = std::byte{7};
    ran.push_back(1);
  });
  parts.memory.deallocate(0, memory);
  EXPECT_EQ(ran, std::vector{1});
}

TEST(PortMemory, KeptRoomsAreHandedOutAgainAndGoBeforeThereIsNone) {
  Parts parts;
  std::byte* const room = parts.memory.take_room(0, 12 * mebibyte);
  ASSERT_NE(room, nullptr);
  EXPECT_EQ(parts.memory.take_room(0, mebibyte), nullptr)
      << "the room has all 16 MiB, a power of 2";
  parts.memory.give_room(0, room, 12 * mebibyte);
  EXPECT_EQ(parts.memory.room_bytes(0), 16 * mebibyte);
  EXPECT_EQ(parts.memory.take_room(0, 10 * mebibyte), room) << "sizes are rounded";
  parts.memory.give_room(0, room, 10 * mebibyte);
  std::byte* const other = parts.memory.allocate(0, mebibyte);
  EXPECT_NE(other, nullptr);
  EXPECT_EQ(parts.memory.room_bytes(0), 0u);
}

TEST(PortBlocks, AreHandedOutAgainByTheirSize) {
  Parts parts;
  PortBlocks blocks(parts.backend, parts.memory, 8 * mebibyte);
  std::byte* const block = blocks.take(0);
  std::byte* const scratch = blocks.take_scratch(0);
  std::byte* const host = blocks.take_host();
  ASSERT_NE(block, nullptr);
  ASSERT_NE(scratch, nullptr);
  ASSERT_NE(host, nullptr);
  blocks.give(0, block);
  blocks.give_scratch(0, scratch);
  blocks.give_host(host);
  EXPECT_EQ(blocks.take_scratch(0), scratch);
  EXPECT_EQ(blocks.take_scratch(0), nullptr) << "two don't fit beside a block";
  EXPECT_EQ(blocks.take(0), block);
  EXPECT_EQ(blocks.take_host(), host);
  blocks.give_host(host);
  blocks.give(0, nullptr);
  EXPECT_NE(blocks.take(0), nullptr) << "what isn't there isn't kept";
}

TEST(PortPacking, PacksWhenItsLaneComesToIt) {
  Parts parts;
  PortPacking packing(parts.operations, std::nullopt);
  std::vector<double> from{1, 2, 3}, to(3);
  const PortTicket ticket = packing.pack(
      0, PortLane::out,
      {Layout::contiguous(3, ElementType::float64), from.data(), to.data(), 0, PackPart::whole});
  EXPECT_EQ(to, std::vector<double>(3));
  EXPECT_TRUE(parts.operations.has_ended(ticket));
  EXPECT_EQ(to, from);
}

TEST(ProgramStreams, RunBesideTheLanesAndOnlyThoseThatWereOpened) {
  Parts parts;
  ProgramStreams streams(parts.backend, parts.operations, false, {});
  const std::uintptr_t stream = streams.open(0);
  std::vector<int> ran;
  parts.operations.launch(0, PortLane::in, adds(ran, 1));
  EXPECT_TRUE(streams.lead(0, PortLane::in, stream));
  streams.call(stream, [&] { ran.push_back(2); });
  const StreamMark mark = streams.mark(0, stream);
  streams.call(stream, [&] { ran.push_back(3); });
  streams.wait_for(mark);
  EXPECT_EQ(ran, (std::vector{1, 2})) << "what comes behind the mark isn't waited for";
  EXPECT_TRUE(streams.is_reached(streams.mark(0, 0))) << "no stream of the program's";
  EXPECT_FALSE(streams.lead(0, PortLane::in, 0));
  EXPECT_THROW(streams.call(stream + 1, [] {}), Error);
  EXPECT_THROW(streams.mark(0, stream + 1), Error);
  EXPECT_THROW(streams.open(1), Error);
}

TEST(PortMachine, CopiesWithinADeviceHaveARouteThatSharesNoLink) {
  const Machine plain = Machine::parse("emulated:2,memory=16MiB");
  const Machine with = with_own_routes(plain);
  for (const Device& each : with.devices) {
    ASSERT_TRUE(with.route(each.space, each.space));
    EXPECT_LT(with.copy_seconds(each.space, each.space, 1e9),
              with.copy_seconds(host_space, each.space, 1e9));
  }
  EXPECT_EQ(with_own_routes(with).routes.size(), with.routes.size()) << "once";
}

TEST(PortMachine, TheBestRateIsThatOfTheNarrowestLinkFromAnotherDevice) {
  Machine machine;
  machine.links = {{"wide", 9e9, 0}, {"narrow", 2e9, 0}, {"host", 50e9, 0}};
  EXPECT_EQ(best_rate_into(machine, 1), 0);
  machine.routes = {{host_space, 1, {2}}, {1, 1, {0}}, {2, 1, {0, 1}}};
  EXPECT_EQ(best_rate_into(machine, 1), 2e9);
}

TEST(Ports, AreFoundAsLongAsSomebodyHoldsThem) {
  auto one = ports::open(Machine::parse("emulated:1,memory=1MiB"));
  auto other = ports::open(Machine::parse("emulated:1,memory=1MiB"));
  EXPECT_EQ(ports::find(one->number()), one);
  EXPECT_EQ(ports::find(other->number()), other);
  EXPECT_EQ(ports::find(HandleKind::memory_file), other) << "the newest";
  const std::uint64_t number = other->number();
  other.reset();
  EXPECT_EQ(ports::find(number), nullptr);
  EXPECT_EQ(ports::find(HandleKind::memory_file), one);
}

}  // namespace
}  // namespace quadriga::message::testing
