// SPDX-License-Identifier: BSD-3-Clause
// src/device/recorded_together.h: variants of tasks that start together, recorded as one program of
// several devices.
#pragma once

#include <quadriga/codelet.h>
#include <quadriga/machine.h>

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "device/meeting.h"

namespace quadriga {

/// What the parameters of tasks begin with whose variants meet.
struct MeetingParams {
  Meeting* meeting = nullptr;
};

/// The variants of `members` tasks for devices whose kernels run when they are called: each joins
/// the meeting of its parameters, where the last to come calls `work` with the arguments of all.
std::vector<Kernel> meeting_variants(std::size_t members,
                                     std::function<void(std::span<const Arguments>)> work);

/// Whether kernels of each of these devices can use the memory of the others, so that one program
/// may have them all: several GPUs of a process with peer access, or emulated devices.
bool can_meet(const Machine& machine, std::span<const DeviceId> devices);

/// The same of devices whose kernels the host runs, on memory that it reaches.
bool kernels_share_memory(const Machine& machine, std::span<const DeviceId> devices);

/// How a program of several devices is queued.
struct DeviceQueues {
  /// Of all members; `stream` is where the member's work goes.
  std::span<const Arguments> members;
  /// Before anything is queued for a member: its device becomes the thread's current one.
  std::function<void(std::size_t member)> turn_to;
  /// What is queued from here on, by any member, starts once all that was queued before has ended.
  std::function<void()> meet;
};

/// The CUDA variants of tasks that start together, of which each has a device of its own. They meet
/// as those of meeting_variants(). What `queue` queues then starts once all their streams have come
/// to it, and all their streams wait for its end. The second time that it gets the same operands,
/// at the same addresses, and parameters, it is recorded as one graph of all devices, which is
/// launched from then on. The codelets wait to queue (Codelet::waits_to_queue).
///
/// `queue` only queues kernels and copies, which may read the memory of the other members' devices,
/// on the members' streams after turning to their devices (a copy's node belongs to the current
/// one), the same for the same arguments and parameters. What can't be recorded is
/// queued each time, and a warning says why. It may be called twice for one launch then.
///
/// Cost:    as recorded(); a graph's launch waits for all devices.
/// Errors:  as `queue` throws, and Meeting::join(). Builds without CUDA return empty variants.
std::vector<Kernel> recorded_together(std::size_t members,
                                      std::function<void(const DeviceQueues&)> queue);

}  // namespace quadriga
