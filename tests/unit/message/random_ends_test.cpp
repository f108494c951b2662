// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/random_ends_test.cpp: ranks that leave, die or give up at any moment of random
// messages and collectives, on hosts and devices. QUADRIGA_TEST_SEED=N runs that program alone.
#include <gtest/gtest.h>
#include <quadriga/error.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "base/random.h"
#include "device_numbers.h"
#include "endpoints.h"
#include "sanitized.h"

namespace quadriga::message::testing {
namespace {

constexpr auto type = ElementType::float64;
constexpr int rounds = 6;
// Nothing takes so long, on a machine with much else to do either.
const Patience ample{80, {}};
constexpr unsigned longest_seconds = 100;
constexpr std::uint64_t programs = is_sanitized ? 3 : 8;

/// What one rank of the program does before its time.
enum class Ending { leaves, dies, gives_up };

/// The same on all ranks, but for `own`.
struct Program {
  Program(std::uint64_t seed, Ending ending, int size)
      : all(mix(seed)),
        how(ending),
        ranks(size),
        who(static_cast<int>(all.below(static_cast<std::uint64_t>(size)))),
        last(static_cast<int>(all.below(rounds))),
        nothing_is_mapped(all.below(2) == 0) {}
  Random all;
  const Ending how;
  const int ranks, who, last;
  const bool nothing_is_mapped;
};

std::size_t draw_count(Random& random) {
  // The last one's last pieces wait for a block of the receiver's device.
  constexpr std::array<std::size_t, 8> counts{0, 1, 700, 1100, 40'000, 300'000, 540'000, 540'000};
  return counts[random.below(counts.size())];
}

// Elements that lie side by side, or every second one.
Layout layout_of(std::size_t count, bool strided) {
  const auto elements = static_cast<std::int64_t>(count);
  return strided ? Layout::vector(elements, 1, 2, type) : Layout::contiguous(elements, type);
}

std::vector<double> content_of(std::size_t count, double first, bool strided) {
  std::vector<double> made(strided ? 2 * count : count, -1);
  for (std::size_t i = 0; i < count; ++i)
    made[strided ? 2 * i : i] = first + static_cast<double>(i);
  return made;
}

double first_of(const Program& program, int round, std::size_t message) {
  return static_cast<double>(mix(static_cast<std::uint64_t>(program.who + 7 * round) + message) %
                             1000);
}

/// One rank's part of a program.
class Rank {
 public:
  Rank(CommunicatorCore& comm, Program& program, Random own)
      : comm_(comm), program_(program), own_(own) {
    constexpr std::array descriptions{"emulated:2,memory=256MiB",
                                      "emulated:2,memory=256MiB,latency=3ms",
                                      "emulated:2,memory=256MiB,peer=300MB/s"};
    port_ = emulated(descriptions[own_.below(3)]);
    for (int other = 0; program.nothing_is_mapped && other < comm.size(); ++other)
      if (other != comm.rank()) comm.endpoint().force_path(other, PairPath::not_opened);
  }

  /// The limit of the call that is given up, wherever that is.
  Patience patience(int round) {
    const bool hurries = program_.how == Ending::gives_up && comm_.rank() == program_.who &&
                         round == program_.last && own_.below(2) == 0;
    return hurries ? Patience{0.004 * own_.uniform(), {}} : ample;
  }

  void messages(int round) {
    std::vector<std::unique_ptr<Numbers>> numbers;
    std::vector<std::vector<double>> expected;
    std::vector<TransferPtr> transfers;
    const std::uint64_t many = 1 + program_.all.below(6);
    const bool sends_first = own_.below(2) == 0;
    const auto size = static_cast<std::uint64_t>(comm_.size());
    for (std::uint64_t i = 0; i < many; ++i) {
      const auto from = static_cast<int>(program_.all.below(size));
      const auto to = static_cast<int>(program_.all.below(size));
      const std::size_t count = draw_count(program_.all);
      for (const bool sends : {sends_first, !sends_first}) {
        if (comm_.rank() != (sends ? from : to)) continue;
        const bool strided = own_.below(3) == 0;
        const auto content = content_of(count, first_of(program_, round, i), strided);
        numbers.push_back(std::make_unique<Numbers>(
            own_.below(4) == 0 ? nullptr : port_, static_cast<DeviceId>(own_.below(2)),
            sends ? content : std::vector(content.size(), -1.0)));
        expected.push_back(sends ? std::vector<double>() : content);
        const MessageBuffer here = numbers.back()->place(layout_of(count, strided));
        const auto tag = static_cast<int>(i);
        transfers.push_back(sends ? comm_.start_send(here, to, tag)
                                  : comm_.start_receive(here, from, tag));
      }
    }
    wait(transfers, round);
    for (std::size_t i = 0; i < numbers.size(); ++i)
      if (!expected[i].empty()) expect(numbers[i]->content() == expected[i], "other content");
  }

  void collective(int round) {
    const std::size_t count = draw_count(program_.all);
    const std::uint64_t kind = program_.all.below(4);
    const auto root =
        static_cast<int>(program_.all.below(static_cast<std::uint64_t>(comm_.size())));
    const auto parts = static_cast<std::size_t>(kind == 2 ? comm_.size() : 1);
    const auto on = [&] { return own_.below(3) == 0 ? nullptr : port_; };
    Numbers from(on(), 0, counted(count, comm_.rank()));
    Numbers into(on(), 1, std::vector<double>(count * parts, -1));
    const Patience limit = patience(round);
    if (kind == 0) {
      comm_.broadcast(from.place(), root, limit);
      expect(from.content() == counted(count, root), "another broadcast");
    } else if (kind == 1) {
      comm_.all_reduce(from.place(), into.place(), ReduceOperation::max, limit);
      expect(into.content() == counted(count, comm_.size() - 1), "another maximum");
    } else if (kind == 2) {
      comm_.all_gather(from.place(), into.place(), limit);
      expect(count == 0 || into.content().back() == double(comm_.size() - 1) + double(count - 1),
             "another part");
    } else {
      comm_.barrier(limit);
    }
  }

  void round(int number) {
    if (program_.all.below(2) == 0)
      messages(number);
    else
      collective(number);
  }

 private:
  // Whatever happens, nothing uses the memory afterwards.
  void wait(const std::vector<TransferPtr>& transfers, int round) {
    try {
      for (const TransferPtr& each : transfers) comm_.endpoint().wait(each, patience(round));
    } catch (...) {
      for (const TransferPtr& each : transfers) comm_.endpoint().withdraw(each);
      throw;
    }
  }

  CommunicatorCore& comm_;
  Program& program_;
  Random own_;
  std::shared_ptr<DevicePort> port_;
};

// All that were left agree, however often they have to.
void go_on_without(CommunicatorCore comm, int ranks) {
  for (;;) {
    try {
      std::vector<double> one{1}, sum{0};
      comm.all_reduce(place_of(one), place_of(sum), ReduceOperation::sum, ample);
      expect(sum[0] == comm.size(), "another sum");
      if (comm.size() == ranks - 1) return;
    } catch (const Error& error) {
      expect(error.code() == Errc::peer_lost || error.code() == Errc::cancelled, error.what());
      comm = comm.shrink();
    }
  }
}

void run_leaving(CommunicatorCore& comm, Program& program, Rank& rank) {
  std::optional<CommunicatorCore> others =
      comm.split(comm.rank() == program.who ? -1 : 0, 0, ample);
  for (int i = 0; i <= program.last; ++i) rank.round(i);
  if (!others) {
    expect(comm.endpoint().close(ample).empty(), "something was left open");
    return;
  }
  // Who shrinks ends what the others still do with it.
  others->barrier(ample);
  try {
    for (int i = program.last + 1; i < rounds; ++i) rank.round(i);
    comm.barrier(ample);
    expect(false, "nothing was thrown");
  } catch (const Error& error) {
    expect(error.code() == Errc::peer_lost || error.code() == Errc::cancelled, error.what());
  }
  go_on_without(comm.shrink(), program.ranks);
}

void run_dying(CommunicatorCore& comm, Program& program, Rank& rank, Random& own) {
  if (comm.rank() == program.who) {
    alarm(0);
    const auto after = std::chrono::microseconds(own.below(60'000));
    std::thread([after] {
      std::this_thread::sleep_for(after);
      kill(getpid(), SIGKILL);
    }).detach();
  }
  try {
    for (int i = 0;; ++i) rank.round(i);
  } catch (const Error& error) {
    expect(error.code() == Errc::peer_lost || error.code() == Errc::cancelled, error.what());
  }
  go_on_without(comm.shrink(), program.ranks);
}

// It closes at once; nobody waits for it any longer.
void run_giving_up(CommunicatorCore& comm, Program& program, Rank& rank) {
  const bool gives_up = comm.rank() == program.who;
  try {
    for (int i = 0; i < rounds; ++i) rank.round(i);
    comm.barrier(ample);
  } catch (const Error& error) {
    const bool is_known = error.code() == Errc::peer_lost || error.code() == Errc::cancelled ||
                          (gives_up && error.code() == Errc::deadline);
    expect(is_known, error.what());
  }
  comm.endpoint().close({0, {}});
}

void run(CommunicatorCore comm, std::uint64_t seed, Ending how) {
  alarm(longest_seconds);
  Program program(seed, how, comm.size());
  Random own(mix(seed * 100 + static_cast<std::uint64_t>(comm.rank())));
  Rank rank(comm, program, own.split());
  try {
    comm.barrier(ample);
    if (how == Ending::leaves) return run_leaving(comm, program, rank);
    if (how == Ending::dies) return run_dying(comm, program, rank, own);
    run_giving_up(comm, program, rank);
  } catch (const std::exception& error) {
    throw std::runtime_error("QUADRIGA_TEST_SEED=" + std::to_string(seed) + ": " + error.what());
  }
}

struct Seeds {
  std::uint64_t first, end;
};
Seeds seeds_of(std::uint64_t many) {
  const char* const given = std::getenv("QUADRIGA_TEST_SEED");
  const char* const times = std::getenv("QUADRIGA_TEST_TIMES");
  if (given == nullptr) return {0, many * (times ? std::strtoull(times, nullptr, 10) : 1)};
  const std::uint64_t seed = std::strtoull(given, nullptr, 10);
  return {seed, seed + 1};
}

int ranks_of(std::uint64_t seed) { return 2 + static_cast<int>(seed % 3); }

void run_as_processes(Ending how) {
  const Seeds seeds = seeds_of(programs);
  for (std::uint64_t seed = seeds.first; seed < seeds.end; ++seed) {
    const std::string address = file_address();
    const int ranks = ranks_of(seed);
    const auto states =
        as_processes(ranks, [&](int rank) { run(joined(address, rank, ranks), seed, how); });
    const int who = Program(seed, how, ranks).who;
    for (int rank = 0; rank < ranks; ++rank) {
      const bool is_killed = how == Ending::dies && rank == who;
      if (is_killed) continue;
      EXPECT_EQ(states[static_cast<std::size_t>(rank)], 0) << "seed " << seed << " rank " << rank;
    }
  }
}

// In a process of their own, which ends if they hang.
void run_as_threads(Ending how) {
  const Seeds seeds = seeds_of(programs);
  for (std::uint64_t seed = seeds.first; seed < seeds.end; ++seed) {
    const auto states = as_processes(1, [&](int) {
      std::atomic<int> failures{0};
      as_threads(ranks_of(seed), [&](const std::shared_ptr<Endpoint>& endpoint) {
        try {
          run(CommunicatorCore(endpoint), seed, how);
        } catch (const std::exception& error) {
          std::fprintf(stderr, "rank %d: %s\n", endpoint->rank(), error.what());
          ++failures;
        }
      });
      expect(failures == 0, "a rank failed");
    });
    EXPECT_EQ(states, std::vector<int>{0}) << "seed " << seed;
  }
}

TEST(RandomEnds, OfProcessesThatLeave) { run_as_processes(Ending::leaves); }
TEST(RandomEnds, OfProcessesThatDie) { run_as_processes(Ending::dies); }
TEST(RandomEnds, OfProcessesThatGiveUp) { run_as_processes(Ending::gives_up); }
TEST(RandomEnds, OfThreadsThatLeave) { run_as_threads(Ending::leaves); }
TEST(RandomEnds, OfThreadsThatGiveUp) { run_as_threads(Ending::gives_up); }

}  // namespace
}  // namespace quadriga::message::testing
