// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/joint_streams.cpp: an event a stream, recorded again for each wait.
#include "device/cuda/joint_streams.h"

#include <quadriga/error.h>

#include "device/cuda/cuda_check.h"

namespace quadriga::cuda {

JointStreams::JointStreams(std::span<const int> devices, std::span<const cudaStream_t> streams)
    : streams_(streams.begin(), streams.end()) {
  for (const int device : devices) {
    const DeviceGuard guard(device);
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "creating an event");
    events_.emplace_back(event);
  }
}

void JointStreams::note(std::size_t stream) {
  check(cudaEventRecord(events_[stream].get(), streams_[stream]), "recording an event");
}

void JointStreams::wait(std::size_t stream, std::size_t other) {
  check(cudaStreamWaitEvent(streams_[stream], events_[other].get(), 0),
        "waiting for another device");
}

void JointStreams::fork() {
  note(0);
  for (std::size_t i = 1; i < streams_.size(); ++i) wait(i, 0);
}

void JointStreams::join() {
  for (std::size_t i = 1; i < streams_.size(); ++i) {
    note(i);
    wait(0, i);
  }
}

void JointStreams::meet() {
  for (std::size_t i = 0; i < streams_.size(); ++i) note(i);
  for (std::size_t i = 0; i < streams_.size(); ++i)
    for (std::size_t other = 0; other < streams_.size(); ++other)
      if (other != i) wait(i, other);
}

void JointStreams::settle() noexcept {
  try {
    meet();
  } catch (const Error&) {
    for (const cudaStream_t stream : streams_) cudaStreamSynchronize(stream);
    cudaGetLastError();
  }
}

}  // namespace quadriga::cuda
