// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/joint_streams.h: streams of several devices that wait for each other by events.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <span>
#include <vector>

namespace quadriga::cuda {

struct DestroyEvent {
  void operator()(cudaEvent_t event) const noexcept { cudaEventDestroy(event); }
};

/// Streams of somebody else's, each of a device of its own. By the thread that queues on all of
/// them. Errors of all functions: as check().
class JointStreams {
 public:
  JointStreams(std::span<const int> devices, std::span<const cudaStream_t> streams);

  std::span<const cudaStream_t> native() const noexcept { return streams_; }
  /// The others wait for what the first has been given so far.
  void fork();
  /// The first waits for what the others have been given so far.
  void join();
  /// Each waits for what all others have been given so far.
  void meet();
  /// As meet(), as far as the devices still do anything. What can't be queued is waited for on the
  /// host.
  void settle() noexcept;

 private:
  using OwnEvent = std::unique_ptr<CUevent_st, DestroyEvent>;

  void note(std::size_t stream);
  void wait(std::size_t stream, std::size_t other);

  std::vector<cudaStream_t> streams_;
  std::vector<OwnEvent> events_;  ///< By stream: what it was given when it was noted last.
};

}  // namespace quadriga::cuda
