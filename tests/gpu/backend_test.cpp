// SPDX-License-Identifier: BSD-3-Clause
// tests/gpu/backend_test.cpp: what the CUDA backend does beyond the contract: CPU streams beside
// it, rates of copies, cost of an operation.
#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <thread>
#include <vector>

#include "base/random.h"
#include "device/cuda/cuda_backend.h"
#include "device/cuda/cuda_check.h"
#include "device/factory.h"
#include "gpu/host_body.h"
#include "gpu/sleep.h"

namespace quadriga {
namespace {

class CudaBackendTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string absence = cuda_absence(); !absence.empty()) GTEST_SKIP() << absence;
    Machine machine = discover_cuda();
    cpu_ = static_cast<DeviceId>(machine.devices.size());
    machine.devices.push_back(Machine::host().devices.front());
    for (Device& device : machine.devices)
      if (device.kind == DeviceKind::cuda) device.memory_bytes = std::size_t{1} << 30;
    backend_ = make_backend(machine);
  }
  void TearDown() override {
    backend_.reset();
    for (void* const memory : pinned_) cudaFreeHost(memory);
  }

  Event launch(StreamId stream, Kernel kernel) {
    kernels_.push_back(std::move(kernel));
    Launch launch;
    launch.kernel = &kernels_.back();
    launch.name = "test";
    return backend_->launch(stream, launch);
  }
  std::vector<Completion> collect(std::size_t count) {
    std::vector<Completion> all;
    while (all.size() < count) {
      Completion some[64];
      const std::size_t got = backend_->next_completion(some, never);
      all.insert(all.end(), some, some + got);
    }
    return all;
  }
  std::byte* pinned(std::size_t bytes) {
    void* memory = nullptr;
    cuda::check(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable), "pinned memory");
    pinned_.push_back(memory);
    return static_cast<std::byte*>(memory);
  }

  DeviceId cpu_ = 0;
  std::unique_ptr<Backend> backend_;
  std::deque<Kernel> kernels_;
  std::vector<void*> pinned_;
};

TEST_F(CudaBackendTest, CpuStreamsWaitForCudaStreams) {
  const StreamId gpu = backend_->create_stream(0, StreamKind::compute);
  const StreamId cpu = backend_->create_stream(cpu_, StreamKind::compute);
  std::atomic<bool> ended{false};
  std::atomic<bool> early{false};
  launch(gpu, [](const Arguments& call) { queue_sleep(call.stream, 30); });
  const Event body = launch(gpu, on_stream([&](const Arguments&) { ended = true; }));
  backend_->wait(cpu, body);
  const Event after = launch(cpu, [&](const Arguments&) { early = !ended; });
  const std::vector<Completion> done = collect(3);
  EXPECT_FALSE(early);
  EXPECT_EQ(done.back().event, after);
  EXPECT_GE(done.back().begin, done[1].end);
  backend_->wait(gpu, after);
}

TEST_F(CudaBackendTest, CudaStreamsWaitForCpuStreams) {
  constexpr std::size_t count = 4096;
  std::vector<int> pageable(count, 1);
  auto* const fast = reinterpret_cast<int*>(pinned(count * sizeof(int)));
  std::byte* const device = backend_->allocate(0, 2 * count * sizeof(int));
  std::vector<int> back(2 * count, 0);
  const StreamId cpu = backend_->create_stream(cpu_, StreamKind::compute);
  const StreamId in = backend_->create_stream(0, StreamKind::copy_in);
  const StreamId out = backend_->create_stream(0, StreamKind::copy_out);
  for (int round = 1; round <= 20; ++round) {
    const Event written = launch(cpu, [&pageable, fast, round](const Arguments&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      std::ranges::fill(pageable, round);
      std::fill_n(fast, count, -round);
    });
    backend_->wait(in, written);
    const auto bytes = count * sizeof(int);
    auto* const from = reinterpret_cast<std::byte*>(pageable.data());
    backend_->copy(in, {host_space, 1, from, device, bytes});
    const Event both = backend_->copy(
        in, {host_space, 1, reinterpret_cast<std::byte*>(fast), device + bytes, bytes});
    backend_->wait(out, both);
    backend_->copy(out,
                   {1, host_space, device, reinterpret_cast<std::byte*>(back.data()), 2 * bytes});
    const std::vector<Completion> done = collect(4);
    EXPECT_EQ(done.front().event, written);
    for (const Completion& each : done) EXPECT_FALSE(each.error);
    ASSERT_TRUE(std::all_of(back.begin(), back.begin() + count, [&](int i) { return i == round; }));
    ASSERT_TRUE(std::all_of(back.begin() + count, back.end(), [&](int i) { return i == -round; }));
  }
}

TEST_F(CudaBackendTest, StreamsMayWaitForWhatIsParked) {
  const StreamId cpu = backend_->create_stream(cpu_, StreamKind::compute);
  const StreamId first = backend_->create_stream(0, StreamKind::compute);
  const StreamId second = backend_->create_stream(0, StreamKind::compute);
  std::vector<int> order;  // One after the other, if all wait as they should.
  const auto note = [&](int step) {
    return [&order, step](const Arguments&) { order.push_back(step); };
  };
  Event last = launch(cpu, [&](const Arguments&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    order.push_back(0);
  });
  for (int step = 1; step < 40; ++step) {
    const StreamId stream = step % 4 == 0 ? cpu : step % 2 ? first : second;
    backend_->wait(stream, last);
    last = launch(stream, stream == cpu ? Kernel(note(step)) : on_stream(note(step)));
  }
  const std::vector<Completion> done = collect(40);
  EXPECT_EQ(done.back().event, last);
  ASSERT_EQ(order.size(), 40u);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST_F(CudaBackendTest, WhatIsParkedIsDroppedWithTheBackend) {
  const StreamId gpu = backend_->create_stream(0, StreamKind::compute);
  const StreamId cpu = backend_->create_stream(cpu_, StreamKind::compute);
  const Event late = launch(
      cpu, [](const Arguments&) { std::this_thread::sleep_for(std::chrono::milliseconds(50)); });
  backend_->wait(gpu, late);
  launch(gpu, [](const Arguments& call) { queue_sleep(call.stream, 1); });
  backend_.reset();
}

TEST_F(CudaBackendTest, CompletionsOfManyStreamsComeAfterWhatTheyWaitedFor) {
  std::vector<StreamId> streams;
  for (int i = 0; i < 6; ++i) streams.push_back(backend_->create_stream(0, StreamKind::compute));
  Event last;
  for (int i = 0; i < 3000; ++i) {
    const StreamId stream = streams[static_cast<std::size_t>(i * 7 % 6)];
    backend_->wait(stream, last);
    last = launch(stream, [](const Arguments& call) { queue_sleep(call.stream, 0); });
  }
  std::vector<std::uint64_t> tickets(6, 0);
  std::size_t at = 0;
  for (const Completion& done : collect(3000)) {
    const StreamId stream = streams[at * 7 % 6];
    ASSERT_EQ(done.event.stream, stream) << at;
    ASSERT_EQ(done.event.ticket, ++tickets[at * 7 % 6]);
    ++at;
  }
}

TEST_F(CudaBackendTest, CopiesAndKernelsOverlap) {
  const std::size_t bytes = bytes_for_milliseconds();
  std::byte* const host = pinned(2 * bytes);
  std::byte* const device = backend_->allocate(0, 2 * bytes);
  ASSERT_NE(device, nullptr);
  const StreamId in = backend_->create_stream(0, StreamKind::copy_in);
  const StreamId out = backend_->create_stream(0, StreamKind::copy_out);
  const StreamId compute = backend_->create_stream(0, StreamKind::compute);
  backend_->copy(in, {host_space, 1, host, device, bytes});
  backend_->copy(out, {1, host_space, device + bytes, host + bytes, bytes});
  launch(compute, [](const Arguments& call) { queue_sleep(call.stream, 5); });
  Nanoseconds last_begin = 0;
  Nanoseconds first_end = never;
  for (const Completion& done : collect(3)) {
    EXPECT_FALSE(done.error);
    last_begin = std::max(last_begin, done.begin);
    first_end = std::min(first_end, done.end);
  }
  EXPECT_LT(last_begin, first_end);
}

// Rectangles between pageable arrays and device memory, on several streams; each copy waits
// for those before it that touched the same array. The same copies, one after the other, on
// plain arrays.
TEST_F(CudaBackendTest, PageableMemoryIsCopiedInTheOrderOfStreams) {
  constexpr std::size_t runs = 300;
  constexpr std::size_t pitch = 20000;
  constexpr int copies = 150;
  Random random(5);
  std::vector<std::vector<std::byte>> arrays(6, std::vector<std::byte>(runs * pitch));
  for (std::vector<std::byte>& array : arrays)
    for (std::size_t i = 0; i < array.size(); i += 8) {
      const std::uint64_t bits = random();
      std::memcpy(array.data() + i, &bits, 8);
    }
  std::vector<std::vector<std::byte>> expected = arrays;
  std::vector<std::byte*> places;
  std::vector<StreamId> streams;
  for (int i = 0; i < 3; ++i) places.push_back(arrays[static_cast<std::size_t>(i)].data());
  for (int i = 0; i < 3; ++i) places.push_back(backend_->allocate(0, runs * pitch));
  for (int i = 0; i < 4; ++i) streams.push_back(backend_->create_stream(0, StreamKind::copy_in));
  for (std::size_t k = 3; k < 6; ++k)
    backend_->copy(streams[0], {host_space, 1, arrays[k].data(), places[k], runs * pitch});
  std::vector<std::vector<Event>> touched(6, {Event{streams[0], 3}});
  for (int i = 0; i < copies; ++i) {
    const bool in = random.chance(0.5);
    const std::size_t host = random.below(3);
    const std::size_t device = 3 + random.below(3);
    const std::size_t height = 1 + random.below(random.chance(0.3) ? 3 : runs);
    const std::size_t width = 1 + random.below(pitch);
    const std::size_t from =
        random.below(runs - height + 1) * pitch + random.below(pitch - width + 1);
    const std::size_t to =
        random.below(runs - height + 1) * pitch + random.below(pitch - width + 1);
    const StreamId stream = streams[random.below(4)];
    const std::size_t source = in ? host : device;
    const std::size_t target = in ? device : host;
    for (const std::size_t touches : {source, target})
      for (const Event event : touched[touches]) backend_->wait(stream, event);
    const Event event = backend_->copy(
        stream, {static_cast<SpaceId>(in ? 0 : 1), static_cast<SpaceId>(in ? 1 : 0),
                 places[source] + from, places[target] + to, width, height, pitch, pitch});
    for (const std::size_t touches : {source, target}) touched[touches].push_back(event);
    for (std::size_t run = 0; run < height; ++run)
      std::memcpy(expected[target].data() + to + run * pitch,
                  expected[source].data() + from + run * pitch, width);
  }
  for (const Completion& done : collect(copies + 3)) EXPECT_FALSE(done.error);
  for (std::size_t k = 3; k < 6; ++k)
    backend_->copy(streams[0], {1, host_space, places[k], arrays[k].data(), runs * pitch});
  collect(3);
  for (std::size_t k = 0; k < 6; ++k) EXPECT_EQ(arrays[k] == expected[k], true) << k;
}

TEST_F(CudaBackendTest, HostMemoryIsPinnedOnce) {
  std::vector<std::byte> memory(std::size_t{8} << 20);
  EXPECT_TRUE(backend_->pin(memory.data(), memory.size()));
  EXPECT_FALSE(backend_->pin(memory.data(), memory.size()));
  backend_->unpin(memory.data(), memory.size());
  EXPECT_TRUE(backend_->pin(memory.data(), memory.size()));
  backend_->unpin(memory.data(), memory.size());
}

TEST_F(CudaBackendTest, DiscoveryGivesTimesOfKernels) {
  const Machine& machine = backend_->machine();
  for (const Device& device : machine.devices) {
    if (device.kind != DeviceKind::cuda) continue;
    for (const char* const kernel :
         {"sgemm", "dgemm", "cgemm", "zgemm", "dsyrk", "dtrsm", "dpotrf"})
      ASSERT_TRUE(machine.has_kernel(device, kernel)) << kernel;
    // Nothing computes a product of order 1024 in less than 10 us, nor takes a second.
    const double seconds = machine.kernel_seconds(device, "dgemm", 1024, 1024.0 * 1024 * 1024);
    EXPECT_GT(seconds, 1e-5);
    EXPECT_LT(seconds, 1);
  }
}

TEST_F(CudaBackendTest, DiscoveryGivesRoutesBothWays) {
  const Machine& machine = backend_->machine();
  for (const Device& device : machine.devices) {
    if (device.kind != DeviceKind::cuda) continue;
    EXPECT_GT(machine.route(host_space, device.space)->links.size(), 0u);
    EXPECT_GT(machine.route(device.space, host_space)->links.size(), 0u);
    for (const Device& other : machine.devices) {
      const bool is_peer = other.kind == DeviceKind::cuda && other.space != device.space;
      EXPECT_EQ(machine.route(device.space, other.space) != nullptr,
                is_peer || &other == &machine.devices[cpu_]);
    }
  }
  EXPECT_EQ(Machine::from_json(machine.to_json()).devices.size(), machine.devices.size());
}

}  // namespace
}  // namespace quadriga
