// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/recorded.cpp: variants that are recorded, alone on their device or together.
#include "device/recorded.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "device/cuda/copies.h"
#include "device/cuda/cuda_check.h"
#include "device/cuda/joint_streams.h"
#include "device/cuda/recordings.h"
#include "device/recorded_together.h"

namespace quadriga {
namespace {

using cuda::DeviceGuard;
using cuda::JointStreams;
using cuda::Program;
using cuda::Recordings;
using Queue = std::function<void(const DeviceQueues&)>;

int current_device() {
  int device = 0;
  cuda::check(cudaGetDevice(&device), "asking for the current device");
  return device;
}

cudaStream_t stream_of(const Arguments& arguments) {
  return static_cast<cudaStream_t>(arguments.stream);
}

/// Calls `queue` for streams that have all come to the same point.
void queue_on(const Queue& queue, std::span<const Meeting::Member> members, JointStreams& streams) {
  std::vector<Arguments> arguments;
  for (std::size_t i = 0; i < members.size(); ++i) {
    arguments.push_back(members[i].arguments);
    arguments.back().stream = streams.native()[i];
    arguments.back().on_end = nullptr;
  }
  const DeviceGuard kept(members.front().device);
  const auto turn_to = [&](std::size_t member) {
    cuda::check(cudaSetDevice(members[member].device), "setting the current device");
  };
  queue({arguments, turn_to, [&] { streams.meet(); }});
}

/// A program of several devices, and what it is launched with.
class JointProgram {
 public:
  explicit JointProgram(Queue queue) : queue_(std::move(queue)) {}

  void launch(std::span<const Meeting::Member> members) {
    std::vector<int> devices;
    std::vector<cudaStream_t> native;
    for (const Meeting::Member& each : members) {
      devices.push_back(each.device);
      native.push_back(stream_of(each.arguments));
    }
    const DeviceGuard kept(devices.front());
    JointStreams streams(devices, native);
    const auto queue_now = [&] {
      streams.fork();
      queue_on(queue_, members, streams);
      streams.join();
    };
    const auto record = [&] {
      return Program(devices,
                     [&](JointStreams& recording) { queue_on(queue_, members, recording); });
    };
    streams.join();
    try {
      recordings_.queue(members, {queue_now, record, native.front()});
      streams.fork();
    } catch (...) {
      streams.settle();  // What was queued is over before anyone's memory goes.
      throw;
    }
  }

 private:
  const Queue queue_;
  Recordings recordings_{sizeof(MeetingParams)};
};

}  // namespace

Kernel recorded(Kernel variant) {
  return [all = std::make_shared<Recordings>(0),
          variant = std::move(variant)](const Arguments& arguments) {
    const auto record = [&] {
      return Program([&](cudaStream_t stream) {
        Arguments recorded = arguments;
        recorded.stream = stream;
        recorded.on_end = nullptr;
        variant(recorded);
      });
    };
    const Meeting::Member alone{arguments, current_device()};
    all->queue({&alone, 1}, {[&] { variant(arguments); }, record, stream_of(arguments)});
  };
}

bool can_meet(const Machine& machine, std::span<const DeviceId> devices) {
  const bool are_all_cuda = std::ranges::all_of(
      devices, [&](DeviceId each) { return machine.devices[each].kind == DeviceKind::cuda; });
  if (!are_all_cuda) return kernels_share_memory(machine, devices);
  const std::vector<int> ordinals = cuda::ordinals_of(machine);
  for (const DeviceId user : devices)
    for (const DeviceId owner : devices) {
      int can = 1;
      if (user != owner)
        cuda::check(cudaDeviceCanAccessPeer(&can, ordinals[user], ordinals[owner]),
                    "asking for peer access");
      if (can == 0) return false;
    }
  return true;
}

std::vector<Kernel> recorded_together(std::size_t members, Queue queue) {
  const auto group = std::make_shared<JointProgram>(std::move(queue));
  std::vector<Kernel> variants;
  for (std::size_t index = 0; index < members; ++index)
    variants.emplace_back([=](const Arguments& own) {
      own.param<MeetingParams>().meeting->join(
          index, {own, current_device()},
          [&](std::span<const Meeting::Member> all) { group->launch(all); });
    });
  return variants;
}

}  // namespace quadriga
