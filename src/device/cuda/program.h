// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/program.h: operations recorded from a stream as a graph, launched as a whole.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <span>

#include "device/cuda/joint_streams.h"

namespace quadriga::cuda {

/// Kernels and copies in the order in which they were queued. Any thread, one at a time. It may be
/// destroyed while it runs.
class Program {
 public:
  Program() = default;
  /// Calls `queue` with a stream of the current device; nothing of what it queues there runs.
  ///
  /// Errors:  what `queue` throws; task_failed if it did what can't be recorded, as waiting for the
  ///          stream, or if the device has no room for the program; else as check().
  explicit Program(const std::function<void(cudaStream_t)>& queue);

  /// The same of several devices, whose first is the current one: calls `queue` with a stream of
  /// each. What is queued on one follows what it was made to wait for on others.
  Program(std::span<const int> devices, const std::function<void(JointStreams&)>& queue);

  explicit operator bool() const noexcept { return static_cast<bool>(executable_); }
  /// Queues all of it as one operation of a stream of its device, or of its first device. Errors:
  /// as check().
  void replay(cudaStream_t stream) const;

 private:
  struct Destroy {
    void operator()(cudaGraphExec_t executable) const noexcept;
  };
  void instantiate(cudaGraph_t graph);

  std::unique_ptr<CUgraphExec_st, Destroy> executable_;
};

}  // namespace quadriga::cuda
