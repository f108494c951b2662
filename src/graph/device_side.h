// SPDX-License-Identifier: BSD-3-Clause
// src/graph/device_side.h: what a task that detaches does on devices.
//
// Such a task is one of the library's own: its codelet detaches and isn't host_only. On the host it
// is as any task that detaches. On a device its variant runs as other kernels do, without a
// promise; once that has ended, go_on() may leave the end of the task to a promise. Its operands
// aren't pinned from there on: nothing that others must bring about keeps memory of a device.
#pragma once

#include <quadriga/types.h>

#include <cstddef>
#include <optional>
#include <span>

#include "graph/task.h"

namespace quadriga {

class Promise;

/// A device that could run a task, as its first operand sees it.
struct OperandPlace {
  DeviceId device = no_device;
  const std::byte* memory = nullptr;  ///< Where the newest content lies there; null: it doesn't.
  bool is_wanted = false;             ///< Tasks that use it were placed there.
};

/// Called by the driver, which waits for it: nothing here throws, or waits for a task.
class DeviceSide {
 public:
  virtual ~DeviceSide() = default;
  /// Where it runs, once its predecessors let it be queued: one of `places`, which aren't lost, or
  /// no_device for the host. Nothing: not yet, ask again once Executor::ready() was called. It may
  /// be asked again after an answer, when that device is lost.
  virtual std::optional<DeviceId> choose(const TaskRef& task,
                                         std::span<const OperandPlace> places) noexcept = 0;
  /// Its variant failed with its device: whether it may run on the host instead.
  virtual bool moves_to_host() noexcept = 0;
  /// Whether a promise ends what has run on a device.
  virtual bool goes_on() const noexcept = 0;
  /// Its variant has run there to its end.
  virtual void go_on(const Promise& promise) noexcept = 0;
};

}  // namespace quadriga
