// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/device_messages_test.cpp: messages from and to memory of emulated devices:
// between processes, between threads, by every way.
#include <gtest/gtest.h>
#include <quadriga/error.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "device_numbers.h"
#include "endpoints.h"
#include "message/communicator.h"
#include "message/pack/stream.h"
#include "processes.h"

namespace quadriga::message::testing {
namespace {

// Sizes around those at which something changes: slots, blocks, segments.
const std::vector<std::size_t> sizes{1, 3, 512, 1000, 1025, 40'000, 262'144, 262'145, 1'000'003};

// Rank 0 sends from its device or host to rank 1's, all sizes.
void exchange_sizes(const std::string& address, int rank, bool from_device, bool to_device) {
  const bool on_device = rank == 0 ? from_device : to_device;
  const auto port = on_device ? emulated() : nullptr;
  CommunicatorCore comm = joined(address, rank);
  for (const std::size_t count : sizes) {
    Numbers numbers(port, static_cast<DeviceId>(rank), counted(count, rank == 0 ? 7 : -1e6));
    if (rank == 0) {
      comm.send(numbers.place(), 1, 5, enough);
      continue;
    }
    const MessageStatus status = comm.receive(numbers.place(), 0, 5, enough);
    expect(status.bytes == count * sizeof(double), "another size");
    expect(numbers.content() == counted(count, 7), "other content");
  }
  comm.barrier(enough);
}

std::vector<int> run_sizes(bool from_device, bool to_device) {
  const std::string address = file_address();
  return as_processes(2, [&](int rank) { exchange_sizes(address, rank, from_device, to_device); });
}
const std::vector<int> passed{0, 0};

TEST(DeviceMessages, FromDeviceToDevice) { EXPECT_EQ(run_sizes(true, true), passed); }
TEST(DeviceMessages, FromHostToDevice) { EXPECT_EQ(run_sizes(false, true), passed); }
TEST(DeviceMessages, FromDeviceToHost) { EXPECT_EQ(run_sizes(true, false), passed); }

// The same elements in other places: a sub-matrix becomes a flat array, a transpose, a triangle.
struct Pair {
  Layout sent, received;
};
std::vector<Pair> pairs() {
  constexpr std::int64_t n = 300;
  const auto type = ElementType::float64;
  const std::vector<std::int64_t> square{n, n}, turned{8, n * 8};
  const Layout flat = Layout::contiguous(n * n, type), part = Layout::vector(n, n, n + 9, type);
  const Layout across = Layout::view(square, turned, type);
  const Layout half = Layout::triangle({n, n}, type);
  return {{part, flat}, {flat, part}, {part, across}, {across, flat}, {half, half}};
}

void exchange_layouts(const std::string& address, int rank, bool from_device, bool to_device) {
  constexpr std::size_t count = 300 * 309;
  const bool on_device = rank == 0 ? from_device : to_device;
  const auto port = on_device ? emulated() : nullptr;
  CommunicatorCore comm = joined(address, rank);
  for (const Pair& pair : pairs()) {
    std::vector<double> source = counted(count, 1), target(count, 0), expected(count, 0);
    const auto bytes = static_cast<std::size_t>(pair.sent.bytes());
    std::vector<std::byte> packed(bytes);
    Packer(pair.sent, source.data()).pack(0, packed);
    Unpacker(pair.received, expected.data()).unpack(0, packed);
    Numbers numbers(port, static_cast<DeviceId>(rank), rank == 0 ? source : target);
    if (rank == 0)
      comm.send(numbers.place(pair.sent), 1, 5, enough);
    else
      comm.receive(numbers.place(pair.received), 0, 5, enough);
    if (rank == 1) expect(numbers.content() == expected, "other content");
  }
  comm.barrier(enough);
}

TEST(DeviceMessages, LayoutsOfBothSidesMayDiffer) {
  for (const int way : {3, 2, 1}) {
    const std::string address = file_address();
    EXPECT_EQ(
        as_processes(
            2, [&](int rank) { exchange_layouts(address, rank, (way & 2) != 0, (way & 1) != 0); }),
        passed)
        << way;
  }
}

// Ranks that are threads, of one port or of two.
TEST(DeviceMessages, WithinAProcess) {
  const auto one = emulated(), two = emulated();
  const std::vector<std::shared_ptr<DevicePort>> ports{nullptr, one, two};
  for (const auto& from_port : ports) {
    for (const auto& to_port : ports) {
      as_threads(2, [&](const std::shared_ptr<Endpoint>& endpoint) {
        const CommunicatorCore comm(endpoint);
        for (const std::size_t count : sizes) {
          const int rank = comm.rank();
          Numbers numbers(rank == 0 ? from_port : to_port, static_cast<DeviceId>(rank),
                          counted(count, rank == 0 ? 3 : 0));
          if (rank == 0) comm.send(numbers.place(), 1, 0, enough);
          if (rank == 1) comm.receive(numbers.place(), 0, 0, enough);
          if (rank == 1) expect(numbers.content() == counted(count, 3), "other content");
        }
      });
    }
  }
}

TEST(DeviceMessages, ARankSendsToItself) {
  const auto port = emulated();
  const CommunicatorCore comm(local_endpoints(1).front());
  for (const std::size_t count : sizes) {
    Numbers from(port, 0, counted(count, 3)), into(port, 1, counted(count, 0));
    comm.send(from.place(), 0, 0, enough);
    comm.receive(into.place(), 0, 0, enough);
    EXPECT_EQ(into.content(), counted(count, 3));
  }
}

TEST(DeviceMessages, AnAllocationIsOpenedOnceAndClosedWhenItIsGone) {
  const std::string address = file_address();
  EXPECT_EQ(as_processes(2,
                         [&](int rank) {
                           const auto port = emulated();
                           CommunicatorCore comm = joined(address, rank);
                           Numbers keeps(port, 0, counted(5000, 0));
                           for (int round = 0; round < 3; ++round) {
                             // At the same address as the one before.
                             Numbers numbers(port, 0, counted(9000, rank == 0 ? round : -1));
                             for (int i = 0; i < 4; ++i) {
                               if (rank == 0) comm.send(numbers.place(), 1, 0, enough);
                               if (rank == 1) comm.receive(numbers.place(), 0, 0, enough);
                             }
                             if (rank == 1)
                               expect(numbers.content() == counted(9000, round), "old content");
                             comm.barrier(enough);
                           }
                           const auto pair = comm.endpoint().pair(1 - rank);
                           if (rank == 1) expect(pair.opened == 3, "opened more than once");
                           if (rank == 1) expect(pair.open == 1, "what is gone is still open");
                           if (rank == 1) expect(pair.in == PairPath::mapped, "another path");
                           if (rank == 0) expect(pair.out == PairPath::mapped, "one-sided");
                           comm.barrier(enough);  // Who leaves has its memory closed.
                         }),
            passed);
}

// Its senders may leave: what a device still writes of their messages is the receiver's own affair.
TEST(DeviceMessages, WhatHasArrivedNeedsItsSenderNoLonger) {
  for (const bool reads : {true, false}) {
    // The last pieces of the largest wait for room on the device when all has been sent.
    for (const std::size_t count : {std::size_t{100}, std::size_t{300'000}, std::size_t{540'000}}) {
      const std::string address = file_address();
      const auto states = as_processes(3, [&](int rank) {
        const auto port = rank == 1 ? emulated("emulated:1,memory=64MiB,latency=60ms")
                          : reads   ? nullptr
                                    : emulated();
        CommunicatorCore comm = joined(address, rank, 3);
        Numbers first(port, 0, counted(count, rank == 0 ? 3 : 0));
        Numbers second(port, 0, counted(count, rank == 2 ? 4 : 0));
        if (rank == 1 && !reads) {
          comm.endpoint().force_path(0, PairPath::not_opened);
          comm.endpoint().force_path(2, PairPath::not_opened);
        }
        comm.barrier(enough);
        if (rank == 0) return comm.send(first.place(), 1, 0, enough);
        if (rank == 2) return comm.send(second.place(), 1, 0, enough);
        const std::vector<TransferPtr> both{comm.start_receive(first.place(), 0, 0),
                                            comm.start_receive(second.place(), 2, 0)};
        for (const TransferPtr& each : both) comm.endpoint().wait(each, enough);
        expect(first.content() == counted(count, 3), "other content");
        expect(second.content() == counted(count, 4), "other content");
      });
      EXPECT_EQ(states, (std::vector<int>{0, 0, 0})) << count << (reads ? " read" : " in pieces");
    }
  }
}

// Also where the receiver can't map anything, which both sides see.
TEST(DeviceMessages, InPiecesWhereNothingCanBeMapped) {
  const std::string address = file_address();
  EXPECT_EQ(as_processes(2,
                         [&](int rank) {
                           const auto port = emulated();
                           CommunicatorCore comm = joined(address, rank);
                           if (rank == 1) comm.endpoint().force_path(0, PairPath::not_opened);
                           comm.barrier(enough);
                           for (const std::size_t count : sizes) {
                             Numbers numbers(port, 0, counted(count, rank == 0 ? 7 : 0));
                             if (rank == 0) comm.send(numbers.place(), 1, 0, enough);
                             if (rank == 1) comm.receive(numbers.place(), 0, 0, enough);
                             expect(numbers.content() == counted(count, 7), "other content");
                           }
                           const auto pair = comm.endpoint().pair(1 - rank);
                           expect(pair.opened == 0, "it was opened");
                           const PairPath path = rank == 0 ? pair.out : pair.in;
                           expect(path == PairPath::not_opened, "the sides differ");
                         }),
            passed);
}

// On a link that takes half a minute for it; the receiver must know within a second.
TEST(DeviceMessages, APeerThatDiesIsLostWithinASecond) {
  for (const bool dies_first : {true, false}) {
    const std::string address = file_address();
    const auto states = as_processes(2, [&](int rank) {
      const auto port = emulated("emulated:2,memory=300MiB,peer=1MB/s");
      CommunicatorCore comm = joined(address, rank);
      Numbers numbers(port, static_cast<DeviceId>(rank),
                      std::vector<double>(std::size_t{16} << 20, 1));
      const bool dies = (rank == 0) == dies_first;
      comm.barrier(enough);
      const TransferPtr under_way = rank == 0 ? comm.start_send(numbers.place(), 1, 0)
                                              : comm.start_receive(numbers.place(), 0, 0);
      if (dies) {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        kill(getpid(), SIGKILL);
      }
      const auto begin = std::chrono::steady_clock::now();
      try {
        comm.endpoint().wait(under_way, enough);
      } catch (const PeerLost&) {
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        // It dies after 0.3 s; a busy machine may take its time, but not the link's.
        expect(took.count() < 64, "it took longer");
        return;
      }
      expect(false, "nothing was thrown");
    });
    EXPECT_EQ(states[dies_first ? 1 : 0], 0);
  }
}

// The memory is the sender's again at once; the receiver hears of it.
TEST(DeviceMessages, ASendThatIsGivenUpEndsBothSides) {
  const std::string address = file_address();
  EXPECT_EQ(as_processes(2,
                         [&](int rank) {
                           const auto port = emulated("emulated:2,memory=300MiB,peer=2MB/s");
                           CommunicatorCore comm = joined(address, rank);
                           {
                             Numbers numbers(port, static_cast<DeviceId>(rank),
                                             std::vector<double>(std::size_t{8} << 20, 1));
                             comm.barrier(enough);
                             const Errc code = code_of([&] {
                               if (rank == 0) comm.send(numbers.place(), 1, 0, {0.3, {}});
                               if (rank == 1) comm.receive(numbers.place(), 0, 0, enough);
                             });
                             expect(code == (rank == 0 ? Errc::deadline : Errc::cancelled),
                                    "another error");
                           }
                           Numbers again(port, 0, counted(1000, rank == 0 ? 1 : 0));
                           if (rank == 0) comm.send(again.place(), 1, 0, enough);
                           if (rank == 1) comm.receive(again.place(), 0, 0, enough);
                           expect(again.content() == counted(1000, 1), "other content");
                         }),
            passed);
}

// Of threads, each of whose devices reads what the other one sends: each waits for the other's.
TEST(DeviceMessages, TwoThreadsGiveUpWhatTheyExchangeAtOnce) {
  const auto states = as_processes(1, [](int) {
    const auto port = emulated("emulated:2,memory=64MiB,peer=40MB/s");
    as_threads(2, [&](const std::shared_ptr<Endpoint>& endpoint) {
      const CommunicatorCore comm(endpoint);
      const int other = 1 - comm.rank();
      const std::size_t count = std::size_t{1} << 20;
      Numbers sent(port, static_cast<DeviceId>(comm.rank()), counted(count, comm.rank()));
      Numbers received(port, static_cast<DeviceId>(comm.rank()), counted(count, -1));
      const TransferPtr arriving = comm.start_receive(received.place(), other, 0);
      const TransferPtr leaving = comm.start_send(sent.place(), other, 0);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      endpoint->withdraw(leaving);
      endpoint->withdraw(arriving);
      expect(leaving->done && arriving->done, "one of them goes on");
    });
  });
  EXPECT_EQ(states, std::vector<int>{0});
}

}  // namespace
}  // namespace quadriga::message::testing
