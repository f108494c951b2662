// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/device_collectives_test.cpp: collectives in memory of devices beside the
// same on the host, between threads and between processes; lost ranks and devices.
#include <gtest/gtest.h>
#include <quadriga/error.h>
#include <signal.h>

#include <array>
#include <functional>

#include "base/random.h"
#include "device/factory.h"
#include "device_numbers.h"
#include "endpoints.h"
#include "message/device_local.h"
#include "message/exchange_transfers.h"
#include "message/ports.h"
#include "schedule_cases.h"

namespace quadriga::message::testing {
namespace {

constexpr auto type = ElementType::float64;

// The same elements on the host and where they are drawn to be.
struct Operand {
  Operand(Random& random, const std::shared_ptr<DevicePort>& port, std::size_t count, bool filled,
          double divisor)
      : layout(random.below(2) == 0 ? Layout::contiguous(static_cast<std::int64_t>(count), type)
                                    : Layout::vector(static_cast<std::int64_t>(count), 1, 2, type)),
        host(nullptr, 0, content(random, count, filled, divisor)),
        there(random.below(4) == 0 ? nullptr : port, static_cast<DeviceId>(random.below(2)),
              host.host) {}

  static std::vector<double> content(Random& random, std::size_t count, bool filled,
                                     double divisor) {
    std::vector<double> made(2 * count + 1, -1);
    if (filled)
      for (double& each : made) each = static_cast<double>(random.below(1000)) / divisor;
    return made;
  }
  MessageBuffer place(bool on_host) { return (on_host ? host : there).place(layout); }
  void check() { expect(there.content() == host.content(), "other results than on the host"); }

  const Layout layout;
  Numbers host, there;
};

using Call = std::function<void(bool on_host)>;

struct Drawn {
  CommunicatorCore& comm;
  const std::shared_ptr<DevicePort>& port;
  Random all;  // The same on all ranks.
  Random own;
  std::vector<std::unique_ptr<Operand>> operands{};
  /// 1: sums and products of all ranks are exact, whatever their order.
  double divisor = 1;

  Operand& operand(std::size_t count, bool filled) {
    operands.push_back(std::make_unique<Operand>(own, port, count, filled, divisor));
    return *operands.back();
  }
};

Call draw_tree(Drawn& with, std::size_t count, int root) {
  CommunicatorCore& comm = with.comm;
  const auto ranks = static_cast<std::size_t>(comm.size());
  TreeOptions options = draw_options(with.all);
  const bool reproducible = std::exchange(options.reproducible, false);
  // Devices have plans of their own, and combine in the same order only where that is asked for.
  with.divisor = reproducible ? 7 : 1;
  if (options.segment_bytes > 0) options.segment_bytes *= 100;
  comm.force(options);
  constexpr std::array operations{ReduceOperation::sum, ReduceOperation::prod,
                                  ReduceOperation::min};
  const ReduceOperation operation = operations[with.all.below(3)];
  const std::uint64_t kind = with.all.below(5);
  Operand& from = with.operand(count, true);
  if (kind == 0)
    return
        [&comm, &from, root](bool on_host) { comm.broadcast(from.place(on_host), root, enough); };
  if (kind == 1 && with.own.below(2) == 0)
    return [=, &comm, &from](bool on_host) {
      comm.all_reduce(from.place(on_host), from.place(on_host), operation, enough, reproducible);
    };
  if (kind == 1 || kind == 2) {
    Operand& into = with.operand(count, false);
    return [=, &comm, &from, &into](bool on_host) {
      if (kind == 1)
        comm.all_reduce(from.place(on_host), into.place(on_host), operation, enough, reproducible);
      else
        comm.reduce(from.place(on_host), into.place(on_host), operation, root, enough,
                    reproducible);
    };
  }
  if (kind == 3) {
    Operand& into = with.operand(count * ranks, false);
    return [&](bool on_host) { comm.all_gather(from.place(on_host), into.place(on_host), enough); };
  }
  std::vector<std::int64_t> counts(ranks, static_cast<std::int64_t>(count / ranks));
  counts[0] += static_cast<std::int64_t>(count % ranks);
  const auto mine = static_cast<std::size_t>(counts[static_cast<std::size_t>(comm.rank())]);
  Operand& into = with.operand(mine, false);
  std::vector<Operand*> parts;
  for (const std::int64_t each : counts)
    parts.push_back(&with.operand(static_cast<std::size_t>(each), false));
  return [=, &comm, &from, &into](bool on_host) {
    comm.reduce_scatter(from.place(on_host), into.place(on_host), counts, operation, enough,
                        reproducible);
    std::vector<MessageBuffer> places;
    for (Operand* const each : parts) places.push_back(each->place(on_host));
    comm.all_gather_parts(into.place(on_host), places, enough);
  };
}

Call draw_direct(Drawn& with, std::size_t count, int root) {
  CommunicatorCore& comm = with.comm;
  const auto ranks = static_cast<std::size_t>(comm.size());
  const std::uint64_t kind = with.all.below(4);
  if (kind < 3) {
    Operand& part = with.operand(kind == 2 ? count * ranks : count, true);
    Operand& whole = with.operand(count * ranks, true);
    return [=, &comm, &part, &whole](bool on_host) {
      const MessageBuffer one = part.place(on_host), all = whole.place(on_host);
      if (kind == 0) comm.gather(one, all, root, enough);
      if (kind == 1) comm.scatter(all, one, root, enough);
      if (kind == 2) comm.all_to_all(one, all, enough);
    };
  }
  struct Part {
    int peer;
    Operand* operand;
  };
  std::vector<Part> sends, receives;
  for (int from = 0; from < comm.size(); ++from)
    for (int to = 0; to < comm.size(); ++to)
      for (std::uint64_t parts = with.all.below(3); parts > 0; --parts) {
        const std::size_t size = with.all.below(2) * with.all.below(count + 1);
        if (from == comm.rank()) sends.push_back({to, &with.operand(size, true)});
        if (to == comm.rank()) receives.push_back({from, &with.operand(size, false)});
      }
  return [&comm, sends, receives](bool on_host) {
    const auto parts = [&](const std::vector<Part>& all) {
      std::vector<RankPart> made;
      for (const Part& each : all) made.push_back({each.peer, each.operand->place(on_host)});
      return made;
    };
    comm.exchange(CallKind::alltoallw, -1, parts(sends), parts(receives), enough);
  };
}

void check_one(CommunicatorCore& comm, const std::shared_ptr<DevicePort>& port,
               std::uint64_t seed) {
  Random all(seed);
  Drawn with{comm, port, all, Random(seed * 100 + static_cast<std::uint64_t>(comm.rank()) + 1)};
  const std::size_t count = with.all.below(4) == 0 ? with.all.below(40'000) : with.all.below(500);
  const int root = static_cast<int>(with.all.below(static_cast<std::uint64_t>(comm.size())));
  const Call call =
      with.all.below(2) == 0 ? draw_tree(with, count, root) : draw_direct(with, count, root);
  call(true);
  call(false);
  for (const auto& each : with.operands) each->check();
}

void check_many(CommunicatorCore& comm, std::uint64_t first, std::uint64_t seeds) {
  const auto port = emulated();
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    try {
      check_one(comm, port, seed);
    } catch (const std::exception& error) {
      throw std::runtime_error("seed " + std::to_string(seed) + ": " + error.what());
    }
  }
  comm.barrier(enough);
}

TEST(DeviceCollectives, GiveWhatTheyGiveOnTheHost) {
  for (const int ranks : {1, 2, 3, 4})
    as_threads(ranks, [&](const std::shared_ptr<Endpoint>& endpoint) {
      CommunicatorCore comm(endpoint);
      EXPECT_NO_THROW(check_many(comm, static_cast<std::uint64_t>(ranks) * 1000, 25));
    });
}

TEST(DeviceCollectives, GiveWhatTheyGiveOnTheHostBetweenProcesses) {
  for (const int ranks : {2, 3, 4}) {
    const std::string address = file_address();
    const auto states = as_processes(ranks, [&](int rank) {
      CommunicatorCore comm = joined(address, rank, ranks);
      check_many(comm, static_cast<std::uint64_t>(ranks) * 2000, 25);
    });
    EXPECT_EQ(states, std::vector<int>(static_cast<std::size_t>(ranks), 0));
  }
}

// Each hand-over costs a call of the system and another thread's turn at the lock.
TEST(DeviceCollectives, StepsAreHandedToNoOtherThread) {
  const std::string address = file_address();
  const auto states = as_processes(4, [&](int rank) {
    const auto port = emulated();
    CommunicatorCore comm = joined(address, rank, 4);
    constexpr std::size_t count = 40'000;
    comm.force({{TreeShape::chain}, 16'000});
    Numbers numbers(port, 0, std::vector<double>(count, rank + 1));
    comm.barrier(enough);
    const std::uint64_t before = comm.endpoint().handed_over();
    comm.all_reduce(numbers.place(), numbers.place(), ReduceOperation::sum, enough);
    expect(comm.endpoint().handed_over() <= before + 1, "steps were handed over");
    expect(numbers.content() == std::vector<double>(count, 10), "another sum");
    comm.barrier(enough);
  });
  EXPECT_EQ(states, (std::vector<int>{0, 0, 0, 0}));
}

TEST(DeviceCollectives, PlansExchangeMemoryOfDevicesAgainAndAgain) {
  const std::string address = file_address();
  const auto states = as_processes(2, [&](int rank) {
    const auto port = emulated();
    CommunicatorCore comm = joined(address, rank);
    const Layout column = Layout::vector(100, 1, 50, type);
    Numbers grid(port, 0, counted(5000, rank));
    const int other = 1 - rank;
    MessageBuffer sent = grid.place(column), received = sent;
    received.data += 49 * sizeof(double);
    const ExchangeTransfers plan = comm.plan({{sent, other, 0}}, {{received, other, 0}});
    for (int round = 0; round < 3; ++round) {
      const std::vector<double> content = counted(5000, rank + 10 * round);
      write_all(grid.place(), std::as_bytes(std::span(content)));
      plan.start();
      plan.wait(enough);
      const std::vector<double> got = grid.content();
      for (std::size_t i = 0; i < 100; ++i)
        expect(got[50 * i + 49] == static_cast<double>(other + 10 * round) + 50 * double(i),
               "another column");
      comm.barrier(enough);
    }
  });
  EXPECT_EQ(states, (std::vector<int>{0, 0}));
}

// On links that take seconds for it; the survivors must know within one.
TEST(DeviceCollectives, ARankThatDiesIsLost) {
  const std::string address = file_address();
  const auto states = as_processes(3, [&](int rank) {
    const auto port = emulated("emulated:2,memory=200MiB,peer=40MB/s");
    CommunicatorCore comm = joined(address, rank, 3);
    Numbers numbers(port, static_cast<DeviceId>(rank % 2),
                    std::vector<double>(std::size_t{4} << 20, 1));
    comm.barrier(enough);
    if (rank == 1) {
      alarm(0);
      std::thread([] {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        kill(getpid(), SIGKILL);
      }).detach();
    }
    try {
      comm.all_reduce(numbers.place(), numbers.place(), ReduceOperation::sum, enough);
    } catch (const PeerLost&) {
      return;
    } catch (const Error& error) {  // The other survivor told it first.
      expect(error.code() == Errc::cancelled, error.what());
      return;
    }
    expect(false, "nothing was thrown");
  });
  EXPECT_EQ(states[0], 0);
  EXPECT_EQ(states[2], 0);
}

// Of a device's memory, by its kernels alone: the device is lost with whatever comes after.
TEST(DeviceCollectives, AReductionIsOneOperation) {
  for (const bool in_place : {true, false}) {
    FaultPlan faults;
    faults.losses = {{0, 3 + 1}};  // Three write the operands.
    const auto port = ports::open(Machine::parse("emulated:1,memory=64MiB"),
                                  [&](std::unique_ptr<Backend> backend) {
                                    return make_faulty_backend(std::move(backend), faults);
                                  });
    Numbers from(port, 0, counted(1000, 1)), with(port, 0, counted(1000, 2)),
        into(port, 0, counted(1000, 3));
    const auto move = reduction_on_device(in_place ? from.place() : into.place(), from.place(),
                                          with.place(), ReduceOperation::sum, type);
    EXPECT_NO_THROW(while (!move->has_ended()) move->advance());
  }
}

// Its rank says so; the others' collective is over, and nobody hangs.
TEST(DeviceCollectives, ADeviceThatIsLostEndsItForAll) {
  for (const std::uint64_t operations : {1, 3, 7, 12}) {
    as_threads(3, [&](const std::shared_ptr<Endpoint>& endpoint) {
      CommunicatorCore comm(endpoint);
      const bool loses = comm.rank() == 1;
      FaultPlan faults;
      // The first operation writes what is sent.
      if (loses) faults.losses = {{0, operations + 1}};
      const auto port = ports::open(Machine::parse("emulated:1,memory=64MiB"),
                                    [&](std::unique_ptr<Backend> backend) {
                                      return make_faulty_backend(std::move(backend), faults);
                                    });
      Numbers numbers(port, 0, counted(100'000, comm.rank()));
      comm.force({{TreeShape::chain}, 80'000});
      const Errc code = code_of(
          [&] { comm.all_reduce(numbers.place(), numbers.place(), ReduceOperation::sum, enough); });
      EXPECT_EQ(code, loses ? Errc::device_lost : Errc::cancelled) << operations;
    });
  }
}

}  // namespace
}  // namespace quadriga::message::testing
