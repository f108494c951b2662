// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/message_rooms_test.cpp: messages of tasks whose data lie on devices: what stays
// off the host, who gets a room, and how they end.
#include "engine/message_rooms.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <algorithm>
#include <array>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "../message/processes.h"
#include "device/factory.h"
#include "engine/engine_access.h"
#include "engine/message_tasks.h"
#include "message/join.h"
#include "plain_kind.h"

namespace quadriga {
namespace {

using message::CallKind;

constexpr double enough = 120;
constexpr std::size_t size = 2048;
constexpr std::size_t bytes = size * sizeof(double);
constexpr auto with_room = "emulated:1,memory=1MiB;cpu:1";

TEST(MessageRooms, AreAnEighthOfADeviceOrOneMessageOfHalfOfIt) {
  EXPECT_TRUE(may_take_room(0, 100, 800));
  EXPECT_TRUE(may_take_room(0, 400, 800));
  EXPECT_FALSE(may_take_room(0, 401, 800));
  EXPECT_TRUE(may_take_room(40, 60, 800));
  EXPECT_FALSE(may_take_room(40, 61, 800));
  EXPECT_FALSE(may_take_room(400, 1, 800));
  EXPECT_FALSE(may_take_room(1, SIZE_MAX, 800));
  EXPECT_FALSE(may_take_room(0, 1, 0));
}

TEST(MessageRooms, AreWhereTheContentLiesElseWhereItIsWanted) {
  const std::byte memory{};
  const std::vector<OperandPlace> nowhere{{0, nullptr, false}, {1, nullptr, false}};
  const std::vector<OperandPlace> wanted{{0, nullptr, false}, {1, nullptr, true}};
  const std::vector<OperandPlace> there{{0, nullptr, true}, {1, &memory, false}};
  EXPECT_EQ(message_place(nowhere, true), nullptr);
  EXPECT_EQ(message_place(wanted, false), nullptr);
  EXPECT_EQ(message_place(wanted, true), &wanted[1]);
  EXPECT_EQ(message_place(there, true), &there[1]);
  EXPECT_EQ(message_place(there, false), &there[1]);
}

/// One rank: an engine with a device, a communicator, tiles. Its kernels run on the device.
class RankOnDevice {
 public:
  RankOnDevice(const std::shared_ptr<message::Endpoint>& endpoint, std::size_t tiles,
               const std::string& devices = with_room, const BackendWrap& wrap = {},
               std::size_t host_memory = 0)
      : engine(EngineAccess::make(options_for(devices, wrap, host_memory))),
        lane(std::make_shared<MessageLane>(message::CommunicatorCore(endpoint))),
        homes(tiles) {
    set_.name = "set";
    set_.access = {Access::write};
    set_.cpu = [](const Arguments& arguments) {
      const auto first = arguments.param<double>();
      for (std::size_t i = 0; i < size; ++i)
        arguments.operands[0].as<double>()[i] = first + static_cast<double>(i);
    };
    add_.name = "add";
    add_.access = {Access::update};
    add_.cpu = [](const Arguments& arguments) {
      for (std::size_t i = 0; i < size; ++i)
        arguments.operands[0].as<double>()[i] += arguments.param<double>();
    };
    for (auto& each : homes) {
      each.fill(0);
      data.push_back(engine.data(each.data(), size, 1, size, DType::float64,
                                 {.keep = false, .resident = true}));
    }
  }
  Future set(std::size_t tile, double first) { return run(set_, Access::write, tile, first); }
  Future add(std::size_t tile, double value) { return run(add_, Access::update, tile, value); }
  Future send(std::size_t tile, int to, int tag) {
    return message({CallKind::send, to, tag}, tile, true);
  }
  Future receive(std::size_t tile, int from, int tag, double seconds = -1) {
    return message({CallKind::recv, from, tag, {}, seconds}, tile, false);
  }
  /// The one with memory of its own.
  DeviceId device() const {
    const auto& all = engine.machine().devices;
    return static_cast<DeviceId>(
        std::ranges::find_if(all, [](const Device& each) { return each.space != host_space; }) -
        all.begin());
  }
  std::uint64_t direct() const { return MessageTasks::counted(engine).bytes_direct; }

  Engine engine;
  std::shared_ptr<MessageLane> lane;
  std::vector<std::array<double, size>> homes;
  std::vector<Data> data;

 private:
  static WrappedOptions options_for(const std::string& devices, const BackendWrap& wrap,
                                    std::size_t host_memory) {
    WrappedOptions options;
    options.devices = devices;
    options.host_memory = host_memory;
    options.wrap_backend = wrap;
    return options;
  }
  Future run(const Codelet& codelet, Access access, std::size_t tile, double value) {
    const Operand operand{data[tile], access};
    SubmitOptions options;
    options.device = device();
    return engine.submit(codelet, std::span(&operand, 1), std::as_bytes(std::span(&value, 1)),
                         options);
  }
  Future message(const MessageCall& call, std::size_t tile, bool sends) {
    MessageTasks& tasks = MessageTasks::of(engine);
    const MessageTaskPtr task =
        tasks.make(lane, call, {MessageShape::of({nullptr, size, 1, size, DType::float64})},
                   sends ? 0 : -1, sends ? -1 : 0);
    return tasks.submit(task, std::span(&data[tile], 1));
  }
  Codelet set_, add_;
};

void expect(bool condition, const char* what) { message::testing::expect(condition, what); }

// Rank 0 computes, sends, and computes on; rank 1 goes on with what it gets.
// All `direct` bytes, or none.
void pass_on(const std::shared_ptr<message::Endpoint>& endpoint, int rank,
             const std::string& devices = with_room, std::uint64_t direct = bytes) {
  RankOnDevice own(endpoint, 1, devices);
  own.set(0, rank == 0 ? 7 : 0);
  own.engine.wait(rank == 0 ? own.send(0, 1, 5) : own.receive(0, 0, 5), enough);
  own.engine.wait(own.add(0, 1), enough);
  expect((own.engine.counters().host_bytes() == 0) == (direct > 0), "or passed the host");
  expect(own.direct() == direct, "the message didn't leave from a device and come to one");
  own.engine.wait(enough);
  expect(own.homes[0][0] == 8 && own.homes[0][size - 1] == 8 + size - 1, "other content");
}

void pass_on_between_threads(const std::string& devices, std::uint64_t direct) {
  const auto endpoints = message::local_endpoints(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      EXPECT_NO_THROW(pass_on(endpoints[static_cast<std::size_t>(rank)], rank, devices, direct));
    });
  for (std::thread& each : threads) each.join();
}

TEST(MessageRooms, WhatLiesOnDevicesTravelsWithoutTheHost) {
  pass_on_between_threads(with_room, bytes);
}

TEST(MessageRooms, AreOfEveryKindWhoseRowSaysSo) {
  plain_kind();
  pass_on_between_threads("plain:1;cpu:1", bytes);
  unstated_kind();
  pass_on_between_threads("unstated:1;cpu:1", 0);
}

TEST(MessageRooms, NorBetweenProcesses) {
  const std::string address = message::testing::file_address();
  const std::vector<int> passed{0, 0};
  EXPECT_EQ(message::testing::as_processes(
                2,
                [&](int rank) {
                  const auto token = message::parse_token("00112233445566778899aabbccddeeff");
                  const auto endpoint = message::join({address, rank, 2, token}, {enough, {}, {}});
                  pass_on(endpoint, rank);
                  message::CommunicatorCore(endpoint).barrier({enough, {}, {}});
                }),
            passed);
}

// The first receive's data were nowhere but at home; kernels make the device the place.
TEST(MessageRooms, FromTheHostToADeviceWhereTheDataWere) {
  const auto endpoints = message::local_endpoints(2);
  RankOnDevice host(endpoints[0], 1), own(endpoints[1], 1);
  host.homes[0].fill(3);
  host.send(0, 1, 1);
  own.set(0, 1);
  own.receive(0, 0, 1);
  own.engine.wait(own.add(0, 2), enough);
  EXPECT_EQ(own.engine.counters().host_bytes(), 0u);
  EXPECT_EQ(own.direct(), bytes);
  own.engine.wait(enough);
  host.engine.wait(enough);
  EXPECT_EQ(host.direct(), 0u);
  EXPECT_EQ(own.homes[0][size - 1], 5);
}

// What waits for its peer keeps no memory from a task that needs all of its device.
// By way of the host it does, and whoever writes the tile next may count on it.
TEST(MessageRooms, ASendThatFitsASlotEndsWithoutItsReceive) {
  const auto endpoints = message::local_endpoints(2);
  RankOnDevice own(endpoints[0], 0);
  std::array<double, 8> home{};
  const Data small = own.engine.data(home.data(), 8, 1, 8, DType::float64);
  Codelet set;
  set.name = "set one";
  set.access = {Access::write};
  set.cpu = [](const Arguments& arguments) { *arguments.operands[0].as<double>() = 5; };
  own.engine.submit(set, {{small, Access::write}}, SubmitOptions{.device = own.device()});
  MessageTasks& tasks = MessageTasks::of(own.engine);
  const MessageTaskPtr task =
      tasks.make(own.lane, {CallKind::send, 1, 1},
                 {MessageShape::of({nullptr, 8, 1, 8, DType::float64})}, 0, -1);
  const Future sent = tasks.submit(task, std::span(&small, 1));
  own.engine.wait(sent, enough);
  own.engine.submit(set, {{small, Access::write}}, SubmitOptions{.device = own.device()});
  own.engine.wait(enough);
  EXPECT_EQ(home[0], 5);
  EXPECT_EQ(own.direct(), 0u);
}

// It counts from when the data are ready, and a room could be filled before.
TEST(MessageRooms, AReceiveWithADeadlineComesByTheHost) {
  const auto endpoints = message::local_endpoints(2);
  RankOnDevice own(endpoints[0], 1), peer(endpoints[1], 1);
  own.set(0, 1);
  own.engine.wait(enough);
  const Future got = own.receive(0, 1, 1, enough);
  peer.set(0, 7);
  peer.send(0, 0, 1);
  peer.engine.wait(enough);
  own.engine.wait(got, enough);
  own.engine.wait(enough);
  EXPECT_EQ(own.homes[0][1], 8);
  EXPECT_EQ(own.direct(), 0u);
}

TEST(MessageRooms, OpenMessagesLeaveTheDeviceToTasks) {
  const auto endpoints = message::local_endpoints(2);
  RankOnDevice own(endpoints[0], 4, "emulated:1,memory=56KiB;cpu:1");  // three tiles fit
  RankOnDevice peer(endpoints[1], 2);
  own.set(0, 10);
  own.send(0, 1, 1);  // received last
  own.set(1, 20);
  own.receive(1, 1, 2);
  Codelet all;
  all.name = "all";
  all.access = {Access::write, Access::write, Access::write};
  all.cpu = [](const Arguments& arguments) {
    for (const View& each : arguments.operands) std::fill_n(each.as<double>(), size, 4.0);
  };
  // Beside the message's datum: the tile that is sent may not be written before.
  const Data spare = own.engine.temporary(size, 1, DType::float64);
  const std::array<Operand, 3> three{
      {{own.data[2], Access::write}, {own.data[3], Access::write}, {spare, Access::write}}};
  SubmitOptions options;
  options.device = own.device();
  own.engine.wait(own.engine.submit(all, three, {}, options), enough);
  peer.set(0, 30);
  peer.send(0, 0, 2);
  peer.receive(1, 0, 1);
  peer.engine.wait(enough);
  own.engine.wait(enough);
  EXPECT_EQ(peer.homes[1][0], 10);
  EXPECT_EQ(own.homes[1][0], 30);
  EXPECT_EQ(own.homes[2][0], 4);
}

Errc end_of(RankOnDevice& rank, const Future& task) {
  try {
    rank.engine.wait(task, enough);
  } catch (const Error& error) {
    return error.code();
  }
  return Errc::internal;
}

TEST(MessageRooms, WhatIsOpenEndsAsByWayOfTheHost) {
  const auto endpoints = message::local_endpoints(2);
  RankOnDevice own(endpoints[0], 4);
  for (std::size_t i = 0; i < 4; ++i) own.set(i, 1);
  const Future late = own.receive(0, 1, 1, 0.05);
  const Future behind = own.add(0, 1);
  EXPECT_EQ(end_of(own, late), Errc::task_failed);
  EXPECT_EQ(end_of(own, behind), Errc::cancelled);
  own.receive(1, 1, 2);
  own.send(2, 1, 3);
  own.engine.cancel();
  own.set(1, 1);
  const Future lost = own.receive(1, 1, 4);
  own.set(3, 1);
  const Future left = own.send(3, 1, 5);
  endpoints[1]->close({0, {}, {}});
  EXPECT_EQ(end_of(own, lost), Errc::peer_lost);
  EXPECT_EQ(end_of(own, left), Errc::peer_lost);
  own.set(0, 1);
  own.receive(0, 1, 6);  // ends with the engine, at the latest
}

// Whatever the device has done by then, all ends: well, or with its loss.
TEST(MessageRooms, OfALostDeviceAreItsMessages) {
  const auto devices = Machine::parse(with_room).devices;
  const auto lost = static_cast<DeviceId>(devices[0].space == host_space);
  for (std::uint64_t operations = 1; operations < 9; ++operations) {
    const auto endpoints = message::local_endpoints(2);
    const auto losing = [&](std::unique_ptr<Backend> backend) {
      return make_faulty_backend(std::move(backend), {.losses = {{lost, operations}}});
    };
    RankOnDevice own(endpoints[0], 2, with_room, losing);
    RankOnDevice peer(endpoints[1], 2);
    std::vector<Future> all{own.set(0, 7), own.send(0, 1, 1), own.set(1, 1), own.receive(1, 1, 2),
                            own.add(1, 2)};
    peer.set(0, 30);
    peer.send(0, 0, 2);
    const Future last = peer.receive(1, 0, 1);
    std::vector<Errc> ends;
    for (const Future& each : all) ends.push_back(end_of(own, each));
    for (const Errc each : ends)
      EXPECT_TRUE(each == Errc::internal || each == Errc::task_failed ||
                  each == Errc::device_lost || each == Errc::cancelled)
          << operations << ": " << name(each);
    if (ends[1] == Errc::internal) {
      EXPECT_EQ(end_of(peer, last), Errc::internal) << operations;
      peer.engine.wait(enough);
      EXPECT_EQ(peer.homes[1][size - 1], 7 + size - 1) << operations;
    }
    peer.engine.cancel();
  }
}

// The kernel that fails is still to end when the send's is queued behind it: nothing may leave.
TEST(MessageRooms, WhatAFailedKernelLeftIsNotSent) {
  const auto endpoints = message::local_endpoints(2);
  const auto failing = [](std::unique_ptr<Backend> backend) {
    return make_faulty_backend(std::move(backend), {.launches = {2}});
  };
  RankOnDevice own(endpoints[0], 2, "emulated:1,memory=1MiB;cpu:2", failing);
  RankOnDevice peer(endpoints[1], 2);
  std::latch gate(1);
  Codelet waits;
  waits.name = "waits";
  waits.access = {Access::update};
  waits.cpu = [&](const Arguments&) { gate.wait(); };
  SubmitOptions on_device;
  on_device.device = own.device();
  own.engine.submit(waits, {{own.data[0], Access::update}}, on_device);
  const Future failed = own.add(0, 1);
  const Future sent = own.send(0, 1, 1);
  peer.engine.wait(peer.set(0, 30), enough);  // time for the driver to queue the others
  const Future got = peer.receive(0, 0, 1);
  gate.count_down();
  EXPECT_EQ(end_of(own, failed), Errc::task_failed);
  EXPECT_EQ(end_of(own, sent), Errc::cancelled);
  own.set(1, 5);
  own.send(1, 1, 1);
  EXPECT_EQ(end_of(peer, got), Errc::internal);
  peer.engine.wait(enough);
  EXPECT_EQ(peer.homes[0][0], 5);
}

// The device fits one tile, too little for a room of its size; the host's only buffer is taken.
TEST(MessageRooms, ASendThatTheHostHasNoBufferForFails) {
  const auto endpoints = message::local_endpoints(2);
  RankOnDevice own(endpoints[0], 0, "emulated:1,memory=24KiB;cpu:1", {}, bytes);
  for (int i = 0; i < 2; ++i) own.data.push_back(own.engine.temporary(size, 1, DType::float64));
  own.set(0, 1);
  own.set(1, 2);
  const Future sent = own.send(1, 1, 1);
  EXPECT_EQ(end_of(own, sent), Errc::too_large);
}

}  // namespace
}  // namespace quadriga
