// SPDX-License-Identifier: BSD-3-Clause
// tests/fake_cuda/destruction_test.cpp: backends that go while anything is queued, parked, called
// or on its way through pinned buffers, with and without a fault: none hangs, and none touches the
// user's memory afterwards.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <deque>
#include <thread>
#include <vector>

#include "base/random.h"
#include "device/cuda/cuda_backend.h"
#include "device/factory.h"
#include "fake_cuda/streams.h"
#include "gpu/sleep.h"
#include "model/graph/random_program.h"

namespace quadriga {
namespace {

constexpr std::size_t block_bytes = std::size_t{5} << 20;

/// Two GPUs and a core, and what is queued on them at random.
class Life {
 public:
  explicit Life(std::uint64_t seed) : random_(seed) {
    Machine machine = discover_cuda();
    for (Device& device : machine.devices) device.memory_bytes = std::size_t{64} << 20;
    machine.devices.push_back(Machine::host().devices.front());
    core_ = static_cast<DeviceId>(machine.devices.size() - 1);
    backend_ = make_backend(machine);
    for (DeviceId device = 0; device < 2; ++device)
      for (const StreamKind kind : {StreamKind::copy_in, StreamKind::copy_out, StreamKind::compute})
        streams_.push_back({backend_->create_stream(device, kind), device,
                            backend_->allocate(device, block_bytes)});
    streams_.push_back({backend_->create_stream(core_, StreamKind::compute), core_});
  }
  void step() {
    Place& place = streams_[random_.below(streams_.size())];
    const Place& other = streams_[random_.below(streams_.size())];
    if (random_.chance(0.5) && other.issued > 0)
      backend_->wait(place.id, {other.id, 1 + random_.below(other.issued)});
    if (random_.chance(0.1)) take();
    ++place.issued;
    if (place.device == core_ || random_.chance(0.4))
      launch(place);
    else
      copy(place);
  }
  void fault() {
    Launch launch;
    launch.kernel = &fault_;
    launch.name = "careless";
    backend_->launch(streams_[2].id, launch);
    ++streams_[2].issued;
  }

 private:
  struct Place {
    StreamId id = 0;
    DeviceId device = 0;
    std::byte* block = nullptr;  // Its own: nothing orders streams that wait for nothing.
    std::uint64_t issued = 0;
  };
  void take() {
    std::array<Completion, 8> some;
    backend_->next_completion(some, backend_->now() + 100'000);
  }
  void launch(const Place& place) {
    Launch launch;
    launch.kernel = place.device == core_ ? &on_core_ : &on_gpu_;
    launch.name = "some";
    launch.waits = place.device != core_ && random_.chance(0.3);
    backend_->launch(place.id, launch);
  }
  void copy(const Place& place) {
    const std::size_t bytes = 1 + random_.below(random_.chance(0.5) ? block_bytes : 100'000);
    std::byte* const home = homes_.emplace_back(bytes).data();
    const auto space = static_cast<SpaceId>(place.device + 1);
    if (random_.chance(0.5))
      backend_->copy(place.id, {host_space, space, home, place.block, bytes});
    else
      backend_->copy(place.id, {space, host_space, place.block, home, bytes});
  }

  const Kernel on_gpu_ = [](const Arguments& call) { queue_sleep(call.stream, 1); };
  const Kernel on_core_ = [](const Arguments&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  const Kernel fault_ = [](const Arguments& call) { queue_fault(call.stream); };
  Random random_;
  DeviceId core_ = 0;
  std::deque<std::vector<std::byte>> homes_;
  std::vector<Place> streams_;
  std::unique_ptr<Backend> backend_;  // The first to go.
};

TEST(Destruction, HangsNowhereAndLeavesTheUsersMemoryAlone) {
  const Seeds seeds = test_seeds(1, 20);
  fake_cuda::faults().devices = 2;
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    fake_cuda::faults().are_contained = random.chance(0.5);
    {
      Life life(seed);
      const std::uint64_t steps = random.below(60);
      const std::uint64_t fault = random.below(120);
      for (std::uint64_t step = 0; step < steps; ++step) {
        if (step == fault) life.fault();
        life.step();
      }
    }
    fake_cuda::start_anew();
  }
  fake_cuda::faults().devices = fake_cuda::devices_by_default();
}

// A program's other libraries allocate and launch where it left its thread.
TEST(CurrentDevice, IsStillTheProgramsAfterEachCall) {
  fake_cuda::faults().devices = 2;
  for (const int current : {1, 0}) {
    cudaSetDevice(current);
    {
      Life life(static_cast<std::uint64_t>(current) + 5);
      int now = -1;
      for (int step = 0; step < 60; ++step) {
        life.step();
        cudaGetDevice(&now);
        ASSERT_EQ(now, current) << "after step " << step;
      }
    }
    int now = -1;
    cudaGetDevice(&now);
    EXPECT_EQ(now, current) << "at the end";
  }
  fake_cuda::faults().devices = fake_cuda::devices_by_default();
}

}  // namespace
}  // namespace quadriga
