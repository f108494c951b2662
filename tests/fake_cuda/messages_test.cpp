// SPDX-License-Identifier: BSD-3-Clause
// tests/fake_cuda/messages_test.cpp: messages between memory of CUDA devices of two processes, this
// program twice more, by handles with CUDA's traps.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <quadriga/error.h>
#include <quadriga/machine.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <string>
#include <vector>

#include "fake_cuda/ranks.h"
#include "fake_cuda/streams.h"
#include "message/communicator.h"
#include "message/device_moves.h"
#include "message/join.h"
#include "message/ports.h"
#include "message/stream_order.h"

namespace quadriga::message {
namespace {

using testing::enough;
using testing::is_rank;
using testing::joined;
using testing::passed;
using testing::rank_of_this;

std::vector<double> counted(std::size_t count, double first) {
  std::vector<double> made(count);
  std::iota(made.begin(), made.end(), first);
  return made;
}

using testing::Numbers;

std::vector<int> run_ranks(const std::string& test) { return testing::run_ranks("CudaRank", test); }

class CudaRank : public ::testing::Test {
 protected:
  void SetUp() override {
    if (rank_of_this() < 0) GTEST_SKIP() << "runs in processes of another test";
    alarm(100);
  }
};

TEST_F(CudaRank, Allocations) {
  const int rank = rank_of_this();
  CommunicatorCore comm = joined();
  for (int round = 0; round < 3; ++round) {
    // At the address of the one before, which the other still has open.
    Numbers numbers(counted(300'000, rank == 0 ? round : -1));
    for (int i = 0; i < 3; ++i) {
      if (rank == 0) comm.send(numbers.place(), 1, 0, enough);
      if (rank == 1) comm.receive(numbers.place(), 0, 0, enough);
    }
    EXPECT_EQ(numbers.content(), counted(300'000, round));
    comm.barrier(enough);
  }
  const auto pair = comm.endpoint().pair(1 - rank);
  EXPECT_EQ(pair.opened, rank == 0 ? 0u : 3u);
  EXPECT_EQ(fake_cuda::opened_handles(), rank == 0 ? 0 : 1);
  EXPECT_EQ(rank == 0 ? pair.out : pair.in, PairPath::mapped);
  comm.barrier(enough);  // Who leaves has its memory closed.
}

TEST_F(CudaRank, Pools) {
  const int rank = rank_of_this();
  CommunicatorCore comm = joined();
  Numbers numbers(counted(300'000, rank == 0 ? 5 : 0), true);
  if (rank == 0) comm.send(numbers.place(), 1, 0, enough);
  if (rank == 1) comm.receive(numbers.place(), 0, 0, enough);
  EXPECT_EQ(numbers.content(), counted(300'000, 5));
  EXPECT_EQ(comm.endpoint().pair(1 - rank).opened, 0u);
  comm.barrier(enough);
}

TEST_F(CudaRank, Death) {
  const int rank = rank_of_this();
  CommunicatorCore comm = joined();
  Numbers numbers(counted(3000, rank));
  if (rank == 0) comm.send(numbers.place(), 1, 0, enough);
  if (rank == 1) comm.receive(numbers.place(), 0, 0, enough);
  if (rank == 0) kill(getpid(), SIGKILL);
  EXPECT_THROW(comm.receive(numbers.place(), 0, 0, enough), PeerLost);
  EXPECT_EQ(numbers.content(), counted(3000, 0));
  EXPECT_EQ(fake_cuda::opened_handles(), 0);
}

TEST_F(CudaRank, Fault) {
  const int rank = rank_of_this();
  CommunicatorCore comm = joined();
  Numbers numbers(counted(3000, rank));
  comm.barrier(enough);
  if (rank == 1) {
    fake_cuda::faults().operations_left = 1;
    try {
      comm.receive(numbers.place(), 0, 0, enough);
      comm.receive(numbers.place(), 0, 0, enough);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::device_lost) << error.what();
    }
    std::fflush(nullptr);
    _exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  try {
    comm.send(numbers.place(), 1, 0, enough);
    comm.send(numbers.place(), 1, 0, enough);
  } catch (const PeerLost&) {
  }
}

// A rank that uses the last of several devices begins no others, and asks none of them again.
TEST(CudaPorts, MemoryOfADeviceBeginsThatDeviceAlone) {
  int devices = 0;
  ASSERT_EQ(cudaGetDeviceCount(&devices), cudaSuccess);
  ASSERT_GT(devices, 1);
  ASSERT_EQ(cudaSetDevice(devices - 1), cudaSuccess);
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 4096), cudaSuccess);
  const auto first = ports::open(Machine::parse("emulated:1,memory=1MiB"));
  const auto port = ports::cuda_at(memory);
  EXPECT_EQ(port, ports::cuda(devices - 1));
  // Ports are numbered as they are made.
  const auto last = ports::open(Machine::parse("emulated:1,memory=1MiB"));
  EXPECT_LE(last->number(), first->number() + 2);
  const int on_host = 0;
  EXPECT_THROW(ports::cuda_at(&on_host), Error);
  cudaFree(memory);
  cudaSetDevice(0);
}

struct ProgramStream {
  ProgramStream() { cudaStreamCreateWithPriority(&native, cudaStreamNonBlocking, 0); }
  ~ProgramStream() { cudaStreamDestroy(native); }
  ProgramStream(const ProgramStream&) = delete;
  ProgramStream& operator=(const ProgramStream&) = delete;
  std::shared_ptr<StreamOrder> order(const Numbers& numbers) const {
    return std::make_shared<StreamOrder>(ports::cuda_at(numbers.memory), DeviceId{0},
                                         reinterpret_cast<std::uintptr_t>(native));
  }
  cudaStream_t native = nullptr;
};

TEST_F(CudaRank, Streams) {
  const int rank = rank_of_this();
  CommunicatorCore comm = joined();
  const std::size_t count = 300'000, bytes = count * sizeof(double);
  Numbers numbers(counted(count, -1)), copy(counted(count, -2));
  const ProgramStream stream;
  std::atomic<bool> is_held{true};
  const std::vector<double> later = counted(count, 7);
  if (rank == 0) {
    cudaLaunchHostFunc(
        stream.native,
        [](void* held) {
          while (*static_cast<std::atomic<bool>*>(held)) usleep(100);
        },
        &is_held);
    cudaMemcpyAsync(numbers.memory, later.data(), bytes, cudaMemcpyHostToDevice, stream.native);
    const TransferPtr sent = comm.start_send(numbers.place(), 1, 0, {}, stream.order(numbers));
    EXPECT_FALSE(comm.endpoint().test(sent));
    is_held = false;
    comm.endpoint().wait(sent, enough);
  } else {
    const TransferPtr arriving =
        comm.start_receive(numbers.place(), 0, 0, {}, stream.order(numbers));
    EXPECT_EQ(comm.endpoint().wait(arriving, enough).bytes, bytes);
    cudaMemcpyAsync(copy.memory, numbers.memory, bytes, cudaMemcpyDeviceToDevice, stream.native);
    cudaStreamSynchronize(stream.native);
    EXPECT_EQ(copy.content(), later);
  }
  comm.barrier(enough);
}

// 0 stands for all streams, of which none can wait: each look at a receive would queue something
// in vain, with the lock.
TEST(CudaMessages, AStreamThatCannotWaitIsAskedOnce) {
  if (is_rank()) return;
  const Numbers numbers(counted(100, 0));
  StreamOrder order(ports::cuda_at(numbers.memory), DeviceId{0}, 0);
  EXPECT_FALSE(order.lead(PortLane::in));
  const std::uint64_t before = fake_cuda::recorded_events();
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(order.lead(PortLane::in));
  EXPECT_EQ(fake_cuda::recorded_events(), before);
}

// Nothing tells the end of all streams but a wait without a limit, which isn't the caller's.
TEST(CudaMessages, AllStreamsOfADeviceAreWaitedForInTime) {
  if (is_rank()) return;
  const Numbers numbers(counted(100, 0));
  CommunicatorCore comm(local_endpoints(1).front());
  fake_cuda::faults().stopped = 1;
  const auto order = std::make_shared<StreamOrder>(ports::cuda_at(numbers.memory), DeviceId{0}, 0);
  EXPECT_FALSE(order->is_reached());
  try {
    comm.await_stream(order, CallKind::allreduce, {0.02, {}});
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::deadline) << error.what();
  }
  fake_cuda::faults().stopped = 0;
  while (!order->is_reached()) usleep(100);
}

// What copies is enough: there are no kernels here to reduce with.
TEST_F(CudaRank, Collectives) {
  const int rank = rank_of_this();
  CommunicatorCore comm = joined();
  constexpr std::size_t count = 40'000;
  comm.force({{TreeShape::chain}, 80'000});
  Numbers numbers(counted(count, rank)), all(std::vector<double>(2 * count, 0));
  comm.all_gather(numbers.place(), all.place(), enough);
  std::vector<double> gathered = counted(count, 0);
  const std::vector<double> second = counted(count, 1);
  gathered.insert(gathered.end(), second.begin(), second.end());
  EXPECT_EQ(all.content(), gathered);
  comm.all_to_all(all.place(), all.place(), enough);
  EXPECT_EQ(all.content(), [&] {
    std::vector<double> twice = counted(count, rank);
    twice.insert(twice.end(), twice.begin(), twice.begin() + count);
    return twice;
  }());
  comm.broadcast(all.place(), 0, enough);
  EXPECT_EQ(all.content().back(), static_cast<double>(count - 1));
  EXPECT_EQ(comm.endpoint().pair(1 - rank).in, PairPath::mapped);
  comm.barrier(enough);
}

TEST_F(CudaRank, CollectiveFault) {
  const int rank = rank_of_this();
  CommunicatorCore comm = joined();
  Numbers numbers(counted(40'000, rank)), all(std::vector<double>(80'000, 0));
  comm.force({{TreeShape::chain}, 8'000});
  comm.barrier(enough);
  if (rank == 1) fake_cuda::faults().operations_left = 5;
  try {
    comm.all_gather(numbers.place(), all.place(), enough);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    const bool is_right = error.code() == (rank == 1 ? Errc::device_lost : Errc::cancelled) ||
                          (rank == 0 && error.code() == Errc::peer_lost);
    EXPECT_TRUE(is_right) << error.what();
  }
  std::fflush(nullptr);
  if (rank == 1) _exit(::testing::Test::HasFailure() ? 1 : 0);
}

TEST(CudaMessages, AnAllocationIsOpenedOnceAndAnotherAtItsAddressAgain) {
  if (is_rank()) return;
  EXPECT_EQ(run_ranks("Allocations"), passed);
}

TEST(CudaMessages, MemoryOfPoolsIsStaged) {
  if (is_rank()) return;
  EXPECT_EQ(run_ranks("Pools"), passed);
}

TEST(CudaMessages, APeerThatDiesIsLostAndItsMemoryClosed) {
  if (is_rank()) return;
  EXPECT_EQ(run_ranks("Death")[1], 0);
}

TEST(CudaMessages, StreamsAreOrderedWithMessages) {
  if (is_rank()) return;
  EXPECT_EQ(run_ranks("Streams"), passed);
}

TEST(CudaMessages, AFaultOfADeviceIsToldOnItsRank) {
  if (is_rank()) return;
  EXPECT_EQ(run_ranks("Fault"), passed);
}

TEST(CudaMessages, CollectivesGiveWhatTheyGiveOnTheHost) {
  if (is_rank()) return;
  EXPECT_EQ(run_ranks("Collectives"), passed);
}

TEST(CudaMessages, AFaultOfADeviceEndsACollectiveForAll) {
  if (is_rank()) return;
  EXPECT_EQ(run_ranks("CollectiveFault"), passed);
}

}  // namespace
}  // namespace quadriga::message
