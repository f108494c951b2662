// SPDX-License-Identifier: BSD-3-Clause
// tests/fake_cuda/nccl_test.cpp: collectives that NCCL carries out, by a library that stands in for
// it (tests/fakes/nccl.cpp): what they give, who chooses, and how they end when something fails.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <quadriga/error.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "fake_cuda/ranks.h"
#include "fake_cuda/streams.h"
#include "message/nccl/collectives.h"

namespace quadriga::message {
namespace {

using testing::enough;
using testing::Numbers;
using testing::rank_of_this;

int launch_on(void* stream, void (*function)(void*), void* data) {
  return cudaLaunchHostFunc(static_cast<cudaStream_t>(stream), function, data);
}

// What the library counts in this process.
int nccl_count(const char* which) {
  void* const library = dlopen(QUADRIGA_FAKE_NCCL, RTLD_NOW);
  if (library == nullptr) throw std::runtime_error(dlerror());
  return reinterpret_cast<int (*)()>(dlsym(library, which))();
}

class NcclRank : public ::testing::Test {
 protected:
  void SetUp() override {
    if (rank_of_this() < 0) GTEST_SKIP() << "runs in processes of another test";
    alarm(250);
    setenv("QUADRIGA_NCCL", QUADRIGA_FAKE_NCCL, 1);
    void* const library = dlopen(QUADRIGA_FAKE_NCCL, RTLD_NOW);
    ASSERT_NE(library, nullptr) << dlerror();
    using Use = void (*)(int (*)(void*, void (*)(void*), void*));
    reinterpret_cast<Use>(dlsym(library, "fake_nccl_use"))(launch_on);
    ASSERT_EQ(cudaSetDevice(rank_of_this()), cudaSuccess);
  }
  static void tell_nccl(const char* what) { setenv("QUADRIGA_TEST_NCCL", what, 1); }
  static CommunicatorCore with_nccl(int ranks = 2) {
    CommunicatorCore comm = testing::joined(ranks);
    comm.force({}, CollectiveBy::nccl);
    return comm;
  }
};

constexpr std::size_t some = 50'000;  // Several slots of the library's, and a part of one.

std::vector<double> numbers_from(double first, std::size_t count = some) {
  std::vector<double> made(count);
  for (std::size_t i = 0; i < count; ++i) made[i] = first + static_cast<double>(i % 1000);
  return made;
}

std::vector<double> sum_of(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> made(a);
  for (std::size_t i = 0; i < a.size(); ++i) made[i] += b[i];
  return made;
}

TEST_F(NcclRank, Results) {
  const int rank = rank_of_this();
  CommunicatorCore comm = with_nccl();
  comm.note_times(true);
  const std::vector<double> first = numbers_from(1), second = numbers_from(100),
                            total = sum_of(first, second);
  const std::vector<double>& own = rank == 0 ? first : second;

  Numbers given(own), got(numbers_from(-1));
  comm.all_reduce(given.place(), got.place(), ReduceOperation::sum, enough);
  EXPECT_EQ(got.content(), total);
  EXPECT_EQ(given.content(), own);
  EXPECT_EQ(comm.times()->by, "NCCL 2.27.3");
  EXPECT_LE(comm.times()->agreed, comm.times()->moved);
  Numbers in_place(own);
  comm.all_reduce(in_place.place(), in_place.place(), ReduceOperation::sum, enough);
  EXPECT_EQ(in_place.content(), total);
  Numbers complex(own);
  comm.all_reduce(complex.place(ElementType::complex128), complex.place(ElementType::complex128),
                  ReduceOperation::sum, enough);
  EXPECT_EQ(complex.content(), total);

  Numbers on_root(numbers_from(-1));
  comm.reduce(given.place(), on_root.place(), ReduceOperation::prod, 1, enough);
  EXPECT_EQ(on_root.content()[7], rank == 1 ? first[7] * second[7] : numbers_from(-1)[7]);

  Numbers from_root(own);
  comm.broadcast(from_root.place(ElementType::bytes), 1, enough);
  EXPECT_EQ(from_root.content(), second);

  Numbers all(std::vector<double>(2 * some));
  comm.all_gather(given.place(), all.place(), enough);
  std::vector<double> both(first);
  both.insert(both.end(), second.begin(), second.end());
  EXPECT_EQ(all.content(), both);

  Numbers half(std::vector<double>(some / 2));
  const std::vector<std::int64_t> counts(2, some / 2);
  comm.reduce_scatter(given.place(), half.place(), counts, ReduceOperation::sum, enough);
  const auto from = total.begin() + rank * static_cast<std::ptrdiff_t>(some / 2);
  EXPECT_EQ(half.content(), std::vector<double>(from, from + some / 2));

  EXPECT_EQ(comm.nccl()->report().collectives, 7u);
  EXPECT_EQ(nccl_count("fake_nccl_called"), 7);
  EXPECT_EQ(nccl_count("fake_nccl_made"), 1);
  comm.barrier(enough);
  comm.endpoint().close(enough);
  EXPECT_EQ(nccl_count("fake_nccl_destroyed") + nccl_count("fake_nccl_aborted"), 1);
}

// What isn't NCCL's stays ours, on all ranks.
TEST_F(NcclRank, Ours) {
  CommunicatorCore comm = with_nccl();
  std::vector<double> own = numbers_from(rank_of_this());
  const MessageBuffer on_host{Layout::contiguous(some, ElementType::float64),
                              reinterpret_cast<std::byte*>(own.data())};
  comm.all_reduce(on_host, on_host, ReduceOperation::sum, enough);
  EXPECT_EQ(own, sum_of(numbers_from(0), numbers_from(1)));
  // One rank's is on its device.
  Numbers given(numbers_from(rank_of_this()));
  std::ranges::copy(numbers_from(rank_of_this()), own.begin());
  comm.broadcast(rank_of_this() == 0 ? given.place() : on_host, 0, enough);
  EXPECT_EQ(rank_of_this() == 0 ? given.content() : own, numbers_from(0));
  // Forced, or chosen so.
  comm.force({{TreeShape::chain}, 80'000});
  comm.broadcast(given.place(), 0, enough);
  comm.force({}, CollectiveBy::ours);
  comm.broadcast(given.place(), 0, enough);
  EXPECT_EQ(given.content(), numbers_from(0));
  EXPECT_EQ(nccl_count("fake_nccl_called"), 0);
  EXPECT_EQ(comm.nccl()->report().collectives, 0u);
  // By these alone ranks differ.
  comm.force({}, rank_of_this() == 0 ? CollectiveBy::ours : CollectiveBy::nccl);
  try {
    comm.broadcast(given.place(), 0, enough);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument) << error.what();
  }
}

// Both ways are measured once; whichever is faster here, all ranks say the same.
TEST_F(NcclRank, Measured) {
  CommunicatorCore comm = testing::joined();
  Numbers few(std::vector<double>(100, rank_of_this()));
  comm.broadcast(few.place(), 0, enough);
  EXPECT_EQ(nccl_count("fake_nccl_made"), 0);
  Numbers numbers(numbers_from(rank_of_this()));
  for (int i = 0; i < 3; ++i) {
    comm.broadcast(numbers.place(), i % 2, enough);
    EXPECT_EQ(numbers.content(), numbers_from(0));
  }
  EXPECT_EQ(nccl_count("fake_nccl_made"), 1);
  const std::uint64_t own = comm.nccl()->report().collectives;
  std::uint64_t least = own;
  const auto place = [](std::uint64_t& value) {
    return MessageBuffer{Layout::contiguous(1, ElementType::uint64),
                         reinterpret_cast<std::byte*>(&value)};
  };
  comm.all_reduce(place(least), place(least), ReduceOperation::min, enough);
  EXPECT_EQ(least, own);
  EXPECT_TRUE(own == 0 || own == 3) << own;
}

// What one rank lacks, all do without.
void go_without_nccl(CommunicatorCore comm, int made) {
  Numbers numbers(numbers_from(rank_of_this()));
  for (int root = 0; root < 2; ++root) comm.broadcast(numbers.place(), root, enough);
  EXPECT_EQ(numbers.content(), numbers_from(0));
  EXPECT_EQ(nccl_count("fake_nccl_called"), 0);
  EXPECT_EQ(nccl_count("fake_nccl_made"), made);
  EXPECT_EQ(nccl_count("fake_nccl_aborted"), made);
  comm.barrier(enough);
}

TEST_F(NcclRank, Absent) {
  if (rank_of_this() == 1) setenv("QUADRIGA_NCCL", "/no/libnccl.so", 1);
  go_without_nccl(with_nccl(), 0);
}
TEST_F(NcclRank, Off) {
  if (rank_of_this() == 0) setenv("QUADRIGA_NCCL", "off", 1);
  CommunicatorCore comm = with_nccl();
  go_without_nccl(comm, 0);
  if (rank_of_this() == 0) {
    EXPECT_EQ(comm.nccl()->report().absence, "the setting nccl is off");
  }
}
TEST_F(NcclRank, Older) {
  if (rank_of_this() == 1) tell_nccl("version=20800");
  go_without_nccl(with_nccl(), 0);
}
TEST_F(NcclRank, Different) {
  if (rank_of_this() == 1) tell_nccl("version=22800");
  go_without_nccl(with_nccl(), 0);
}
TEST_F(NcclRank, OneDevice) {
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  go_without_nccl(with_nccl(), 0);
}
TEST_F(NcclRank, NoStart) {
  if (rank_of_this() == 1) tell_nccl("no_start");
  go_without_nccl(with_nccl(), rank_of_this() == 1 ? 0 : 1);
}
TEST_F(NcclRank, LateStart) {
  if (rank_of_this() == 0) tell_nccl("late_start");
  go_without_nccl(with_nccl(), 1);
}

// Of a rank's two collectives the second failed: it is aborted if the rank had begun it.
void expect_aborted_if_begun() {
  EXPECT_EQ(nccl_count("fake_nccl_aborted"), nccl_count("fake_nccl_called") == 2 ? 1 : 0);
}

// What a rank gets that isn't itself the cause; the one that is may have left meanwhile.
void expect_told(const Error& error) {
  const bool is_told = error.code() == Errc::cancelled || error.code() == Errc::peer_lost;
  EXPECT_TRUE(is_told) << error.what();
}

// One rank's deadline passes while the other's collective hangs.
void meet_deadline(CommunicatorCore comm) {
  Numbers numbers(numbers_from(rank_of_this()));
  comm.barrier(enough);
  try {
    comm.all_reduce(numbers.place(), numbers.place(), ReduceOperation::sum,
                    rank_of_this() == 0 ? Patience{1, {}} : enough);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    if (rank_of_this() == 1) {
      expect_told(error);
    } else {
      EXPECT_EQ(error.code(), Errc::deadline) << error.what();
    }
  }
  expect_aborted_if_begun();
  // No collective works afterwards, and none waits.
  EXPECT_THROW(comm.barrier(enough), Error);
}
TEST_F(NcclRank, NeverStarts) {
  if (rank_of_this() == 1) tell_nccl("never_starts");
  CommunicatorCore comm = with_nccl();
  Numbers numbers(numbers_from(rank_of_this()));
  EXPECT_THROW(comm.all_reduce(numbers.place(), numbers.place(), ReduceOperation::sum,
                               rank_of_this() == 0 ? Patience{1, {}} : enough),
               Error);
}
TEST_F(NcclRank, Hangs) {
  CommunicatorCore comm = with_nccl();
  Numbers numbers(numbers_from(rank_of_this()));
  comm.broadcast(numbers.place(), 0, enough);
  if (rank_of_this() == 1) tell_nccl("hangs");
  meet_deadline(std::move(comm));
}
TEST_F(NcclRank, Broken) {
  CommunicatorCore comm = with_nccl();
  Numbers numbers(numbers_from(rank_of_this()));
  comm.broadcast(numbers.place(), 0, enough);
  if (rank_of_this() == 1) tell_nccl("broken");
  try {
    comm.broadcast(numbers.place(), 0, enough);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    if (rank_of_this() == 0) {
      expect_told(error);
    } else {
      EXPECT_EQ(error.code(), Errc::unavailable) << error.what();
    }
  }
}

// A rank dies while all are in NCCL's collective; those that are left have NCCL again.
TEST_F(NcclRank, Death) {
  const int rank = rank_of_this();
  CommunicatorCore comm = with_nccl(3);
  Numbers numbers(numbers_from(rank));
  comm.all_reduce(numbers.place(), numbers.place(), ReduceOperation::sum, enough);
  if (rank == 1) tell_nccl("dies");
  EXPECT_THROW(comm.all_reduce(numbers.place(), numbers.place(), ReduceOperation::sum, enough),
               PeerLost);
  expect_aborted_if_begun();
  CommunicatorCore left = comm.shrink();
  left.force({}, CollectiveBy::nccl);
  EXPECT_EQ(left.size(), 2);
  Numbers anew(numbers_from(rank));
  left.all_reduce(anew.place(), anew.place(), ReduceOperation::sum, enough);
  EXPECT_EQ(anew.content(), sum_of(numbers_from(0), numbers_from(2)));
  EXPECT_EQ(nccl_count("fake_nccl_made"), 2);
  left.barrier(enough);
}

// Two communicators whose ranks meet in any order: NCCL's would wait in a circle.
TEST_F(NcclRank, TwoThreads) {
  CommunicatorCore first = with_nccl();
  CommunicatorCore second = *first.split(0, rank_of_this(), enough);
  second.force({}, CollectiveBy::nccl);
  const auto call = [](CommunicatorCore& comm, double begin) {
    cudaSetDevice(rank_of_this());
    Numbers own(numbers_from(begin + rank_of_this(), 9000)), all(std::vector<double>(18'000));
    for (int i = 0; i < 20; ++i) {
      comm.all_gather(own.place(), all.place(), enough);
      const std::vector<double> found = all.content();
      EXPECT_EQ(found.front(), begin);
      EXPECT_EQ(found.back(), numbers_from(begin + 1, 9000).back());
    }
  };
  std::thread other([&] { call(second, 100); });
  call(first, 0);
  other.join();
  first.barrier(enough);
}

/// How ranks ended; what the library's start leaves where not all joined is removed.
std::vector<int> ends_of(const std::string& test, int ranks) {
  std::string folder = ::testing::TempDir() + "nccl-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no folder for the ranks");
  setenv("QUADRIGA_TEST_NCCL_FOLDER", folder.c_str(), 1);
  std::vector<int> ended = testing::run_ranks("NcclRank", test, ranks);
  unsetenv("QUADRIGA_TEST_NCCL_FOLDER");
  std::filesystem::remove_all(folder);
  return ended;
}

void expect_passed(const std::string& test, int ranks = 2) {
  if (testing::is_rank()) return;
  EXPECT_EQ(ends_of(test, ranks), std::vector<int>(ranks, 0));
}

TEST(Nccl, GivesWhatOursGive) { expect_passed("Results"); }
TEST(Nccl, LeavesTheRestToOurs) { expect_passed("Ours"); }
TEST(Nccl, AllRanksChooseTheSame) { expect_passed("Measured"); }
TEST(Nccl, ARankWithoutItMakesAllGoWithout) { expect_passed("Absent"); }
TEST(Nccl, ItCanBeSwitchedOffOnOneRank) { expect_passed("Off"); }
TEST(Nccl, AnOldVersionIsNotUsed) { expect_passed("Older"); }
TEST(Nccl, VersionsThatDifferAreNotUsed) { expect_passed("Different"); }
TEST(Nccl, TwoRanksOnOneDeviceGoWithout) { expect_passed("OneDevice"); }
TEST(Nccl, ARankThatCannotStartMakesAllGoWithout) { expect_passed("NoStart"); }
TEST(Nccl, ARankThatFailsLaterMakesAllGoWithout) { expect_passed("LateStart"); }
TEST(Nccl, ARankThatNeverJoinsMeetsTheDeadline) { expect_passed("NeverStarts"); }
TEST(Nccl, ACollectiveThatHangsMeetsTheDeadline) { expect_passed("Hangs"); }
TEST(Nccl, AFailureIsToldOnAllRanks) { expect_passed("Broken"); }
TEST(Nccl, CommunicatorsOfTwoThreadsNeverWaitForEachOther) { expect_passed("TwoThreads"); }
TEST(Nccl, ALostRankIsToldAndTheOthersGoOn) {
  if (testing::is_rank()) return;
  const std::vector<int> ended = ends_of("Death", 3);
  EXPECT_EQ(ended[0], 0);
  EXPECT_EQ(ended[1], SIGKILL);
  EXPECT_EQ(ended[2], 0);
}

}  // namespace
}  // namespace quadriga::message
