// SPDX-License-Identifier: BSD-3-Clause
// tests/fake_cuda/faults_test.cpp: a kernel's fault, which ends CUDA's work in the whole process:
// whatever is queued anywhere ends, nothing touches the user's memory afterwards.
#include <gtest/gtest.h>
#include <quadriga/engine.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/log.h"
#include "device/cuda/cuda_backend.h"
#include "fake_cuda/streams.h"
#include "gpu/host_body.h"
#include "gpu/sleep.h"
#include "model/graph/random_program.h"

namespace quadriga {
namespace {

using fake_cuda::faults;

std::string device_loss(const std::exception_ptr& error) {
  try {
    if (error) std::rethrow_exception(error);
  } catch (const Error& cause) {
    if (cause.code() == Errc::device_lost) return cause.what();
  }
  return {};
}

class FaultsTest : public testing::Test {
 protected:
  void SetUp() override {
    faults().devices = std::max(2, faults().devices.load());
    machine_ = discover_cuda();
    for (Device& device : machine_.devices) device.memory_bytes = std::size_t{64} << 20;
  }
  void TearDown() override {
    backend_.reset();
    fake_cuda::start_anew();
    faults().devices = fake_cuda::devices_by_default();
  }
  Event launch(StreamId stream, const Kernel& kernel, std::string_view name) {
    Launch launch;
    launch.kernel = &kernel;
    launch.name = name;
    return backend_->launch(stream, launch);
  }
  /// What ends within seconds.
  std::vector<Completion> collect(std::size_t count) {
    std::vector<Completion> all;
    const Nanoseconds until = backend_->now() + 20'000'000'000;
    while (all.size() < count && backend_->now() < until) {
      Completion some[16];
      const std::size_t got = backend_->next_completion(some, until);
      all.insert(all.end(), some, some + got);
    }
    return all;
  }

  Machine machine_;
  std::unique_ptr<Backend> backend_;
  const Kernel fault_ = [](const Arguments& call) { queue_fault(call.stream); };
  const Kernel sleep_ = [](const Arguments& call) { queue_sleep(call.stream, 5); };
  const Kernel until_fault_ = [](const Arguments& call) {
    auto* const stream = static_cast<cudaStream_t>(call.stream);
    stream->push([stream] {
      while (!fake_cuda::has_stopped(stream->device)) std::this_thread::yield();
    });
  };
};

TEST_F(FaultsTest, WhatWaitsForTheHostOnAnotherDeviceEnds) {
  backend_ = make_cuda_backend(machine_);
  const StreamId first = backend_->create_stream(0, StreamKind::compute);
  const StreamId second = backend_->create_stream(1, StreamKind::copy_out);
  std::vector<std::byte> home(std::size_t{9} << 20);
  std::byte* const block = backend_->allocate(1, home.size());
  launch(second, until_fault_, "long");
  backend_->copy(second, {machine_.devices[1].space, host_space, block, home.data(), home.size()});
  launch(first, fault_, "careless");
  const std::vector<Completion> ended = collect(3);
  ASSERT_EQ(ended.size(), 3u);
  for (const Completion& each : ended) {
    EXPECT_NE(device_loss(each.error), "");
    EXPECT_NE(device_loss(each.error).find("careless"), std::string::npos);
    EXPECT_NE(device_loss(each.error).find("start a new one"), std::string::npos);
  }
}

TEST_F(FaultsTest, DevicesThatItTakesAlongAreLostAtOnce) {
  backend_ = make_cuda_backend(machine_);
  backend_->create_stream(1, StreamKind::compute);
  launch(backend_->create_stream(0, StreamKind::compute), fault_, "careless");
  EXPECT_EQ(collect(1).size(), 1u);
  EXPECT_EQ(backend_->allocate(1, 4096), nullptr);
}

// More streams and events than were there before are asked for after the fault.
TEST_F(FaultsTest, WhatIsQueuedAfterwardsEndsAsWell) {
  backend_ = make_cuda_backend(machine_);
  const StreamId first = backend_->create_stream(0, StreamKind::compute);
  const StreamId second = backend_->create_stream(1, StreamKind::compute);
  launch(first, fault_, "careless");
  while (!fake_cuda::has_faulted(0)) std::this_thread::yield();
  const Event late = launch(second, sleep_, "late");
  backend_->wait(first, late);
  launch(first, sleep_, "later");
  const std::vector<Completion> ended = collect(3);
  ASSERT_EQ(ended.size(), 3u);
  for (const Completion& each : ended) EXPECT_NE(device_loss(each.error), "");
  EXPECT_EQ(backend_->allocate(0, 4096), nullptr);
  EXPECT_EQ(backend_->allocate(1, 4096), nullptr);
}

// Its word can't be pinned.
TEST_F(FaultsTest, AStreamThatCannotBeMadeIsNoStream) {
  backend_ = make_cuda_backend(machine_);
  faults().refused_host_allocations = 1;
  EXPECT_THROW(backend_->create_stream(0, StreamKind::compute), Error);
  launch(backend_->create_stream(1, StreamKind::compute), sleep_, "well");
  const std::vector<Completion> ended = collect(1);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_FALSE(ended[0].error);
}

// Nobody says that a copy from the other device's memory brought what was there.
TEST_F(FaultsTest, ADeviceThatIsNotAffectedGoesOn) {
  faults().are_contained = true;
  backend_ = make_cuda_backend(machine_);
  const StreamId first = backend_->create_stream(0, StreamKind::compute);
  const StreamId second = backend_->create_stream(1, StreamKind::compute);
  const StreamId between = backend_->create_stream(1, StreamKind::peer_in);
  constexpr std::size_t bytes = 4096;
  std::byte* const source = backend_->allocate(0, bytes);
  std::byte* const target = backend_->allocate(1, bytes);
  const SpaceId from = machine_.devices[0].space;
  const SpaceId to = machine_.devices[1].space;
  const Event fault = launch(first, fault_, "careless");
  backend_->wait(between, fault);
  const Event copied = backend_->copy(between, {from, to, source, target, bytes});
  backend_->wait(second, copied);
  const Event on_second = launch(second, sleep_, "careful");
  for (const Completion& each : collect(3))
    EXPECT_EQ(device_loss(each.error) == "", each.event == on_second) << device_loss(each.error);
  EXPECT_EQ(backend_->allocate(0, bytes), nullptr);
  EXPECT_NE(backend_->allocate(1, bytes), nullptr);
  backend_->copy(between, {from, to, source, target, bytes});
  std::vector<std::byte> home(bytes);
  backend_->copy(between, {host_space, to, home.data(), target, bytes});
  const std::vector<Completion> ended = collect(2);
  ASSERT_EQ(ended.size(), 2u);
  EXPECT_NE(device_loss(ended[0].error), "");
  EXPECT_EQ(device_loss(ended[1].error), "");
}

TEST_F(FaultsTest, TheDeviceThatFaultedIsTheOneThatIsLost) {
  faults().are_contained = true;
  backend_ = make_cuda_backend(machine_);
  const StreamId second = backend_->create_stream(1, StreamKind::compute);
  const StreamId first = backend_->create_stream(0, StreamKind::compute);
  const Event fault = launch(first, fault_, "careless");
  while (!fake_cuda::has_faulted(0)) std::this_thread::yield();
  backend_->wait(second, fault);
  const StreamId third = backend_->create_stream(1, StreamKind::compute);
  for (const StreamId stream : {second, third}) launch(stream, sleep_, "careful");
  const std::vector<Completion> ended = collect(3);
  ASSERT_EQ(ended.size(), 3u);
  for (const Completion& each : ended)
    EXPECT_EQ(device_loss(each.error) == "", each.event != fault) << device_loss(each.error);
}

// It passes what it waits for when the other device is lost; that it got there tells nothing.
TEST_F(FaultsTest, WhatADeviceThatIsLostNeverDidHasNotEnded) {
  faults().are_contained = true;
  backend_ = make_cuda_backend(machine_);
  const StreamId first = backend_->create_stream(0, StreamKind::compute);
  const StreamId second = backend_->create_stream(1, StreamKind::compute);
  std::atomic<bool> may_go = false;
  const Kernel wait = [&may_go](const Arguments& call) {
    static_cast<cudaStream_t>(call.stream)->push([&may_go] { may_go.wait(false); });
  };
  launch(second, sleep_, "before");
  launch(first, wait, "behind");
  launch(first, fault_, "careless");
  const Event never = launch(first, sleep_, "never");
  backend_->wait(second, never);
  const Event after = launch(second, sleep_, "after");
  may_go = true;
  may_go.notify_all();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  std::vector<Completion> ended = collect(5);
  ASSERT_EQ(ended.size(), 5u);
  EXPECT_EQ(ended.back().event, after);
  std::erase_if(ended, [&](const Completion& each) { return each.event != never; });
  EXPECT_NE(device_loss(ended[0].error), "");
}

// A thread that still copied would touch pages that are gone.
TEST_F(FaultsTest, MemoryMayGoOnceItsCopiesHaveEnded) {
  for (int round = 0; round < 10; ++round) {
    backend_ = make_cuda_backend(machine_);
    constexpr std::size_t bytes = std::size_t{24} << 20;
    const StreamId compute = backend_->create_stream(0, StreamKind::compute);
    const StreamId in = backend_->create_stream(0, StreamKind::copy_in);
    const StreamId out = backend_->create_stream(0, StreamKind::copy_out);
    std::byte* const block = backend_->allocate(0, bytes);
    void* const pages = mmap(nullptr, 2 * bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    ASSERT_NE(pages, MAP_FAILED);
    auto* const home = static_cast<std::byte*>(pages);
    const SpaceId space = machine_.devices[0].space;
    backend_->copy(in, {host_space, space, home, block, bytes});
    backend_->copy(out, {space, host_space, block, home + bytes, bytes});
    std::this_thread::sleep_for(std::chrono::microseconds(600 * round));
    launch(compute, fault_, "careless");
    EXPECT_EQ(collect(3).size(), 3u);
    munmap(pages, 2 * bytes);
    backend_.reset();
    fake_cuda::start_anew();
  }
}

class EngineFaultsTest : public FaultsTest {
 protected:
  static Codelet codelet(std::string name, Access access, Kernel cuda) {
    Codelet made;
    made.name = std::move(name);
    made.access = {access};
    made.cuda = std::move(cuda);
    return made;
  }
};

TEST_F(EngineFaultsTest, WhatIsHomeIsIntactAndEveryWaitEnds) {
  const Codelet add =
      codelet("add", Access::update,
              on_stream([](const Arguments& call) { call.operands[0].as<double>()[0] += 1; }));
  const Codelet careless = codelet("careless", Access::update, fault_);
  std::vector<double> good(100, 1.5);
  std::vector<double> bad(100, 2.5);
  EngineOptions options;
  options.machine = machine_;
  {
    Engine engine(options);
    const Data first = engine.data(good.data(), 100, 1, 100, DType::float64);
    const Data second = engine.data(bad.data(), 100, 1, 100, DType::float64);
    engine.submit(add, {{first, Access::update}});
    engine.wait(300);
    engine.submit(careless, {{second, Access::update}});
    for (int i = 0; i < 50; ++i) engine.submit(add, {{second, Access::update}});
    try {
      engine.wait(300);
      ADD_FAILURE() << "nothing was said of the fault";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::device_lost) << error.what();
      EXPECT_NE(std::string(error.what()).find("careless"), std::string::npos) << error.what();
    }
    engine.wait(first, 20);
    EXPECT_NE(engine.status().find("(lost)"), std::string::npos) << engine.status();
    engine.submit(add, {{first, Access::update}});
    try {
      engine.wait(300);
      ADD_FAILURE() << "nothing was said of devices that are gone";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::device_lost) << error.what();
      EXPECT_NE(std::string(error.what()).find("careless"), std::string::npos) << error.what();
    }
  }
  EXPECT_EQ(good[0], 2.5);
  EXPECT_EQ(bad, std::vector<double>(100, 2.5));
}

TEST_F(EngineFaultsTest, ANewEngineSaysThatTheProcessMustBeNew) {
  faults().stopped = faults().faulted = fake_cuda::all_devices;
  EngineOptions described;
  described.machine = machine_;
  EngineOptions discovered;
  discovered.devices = "cuda:1";
  for (const EngineOptions& options : {described, discovered}) {
    try {
      const Engine engine(options);
      FAIL() << "an engine was made after a fault";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::unavailable) << error.what();
      EXPECT_NE(std::string(error.what()).find("start a new"), std::string::npos) << error.what();
    }
  }
}

// Whatever isn't reported lost is right, every error is of a fault's kind, and everything ends.
TEST(FaultyPrograms, EndWhereverTheFaultIs) {
  set_log_level(LogLevel::off);
  give_cuda_variants(on_stream);
  const Seeds seeds = test_seeds(400'000, QUADRIGA_TEST_PROGRAMS / 2);
  int lost = 0;
  for (std::uint64_t i = 0; i < seeds.count; ++i) {
    const std::uint64_t seed = seeds.first + 101 * i;  // each on another machine
    faults().devices = 1 << seed % 3;
    faults().are_contained = Random(seed + 1).chance(0.5);
    ProgramRun run = make_gpu_run(seed);
    faults().operations_left = 1 + static_cast<std::int64_t>(Random(seed).below(1200));
    const std::string wrong = run.program.run_despite_faults(run.options, lost);
    fake_cuda::start_anew();
    ASSERT_EQ(wrong, "") << "replay with QUADRIGA_TEST_SEED=" << seed;
  }
  faults().devices = fake_cuda::devices_by_default();
  std::printf("%d tiles lost\n", lost);
  set_log_level(LogLevel::warning);
}

}  // namespace
}  // namespace quadriga
