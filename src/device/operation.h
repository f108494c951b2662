// SPDX-License-Identifier: BSD-3-Clause
// src/device/operation.h: what a stream's queue holds, and the checks that all backends share.
#pragma once

#include <quadriga/machine.h>

#include <variant>

#include "device/backend.h"

namespace quadriga {

/// An operation of a stream, or (an Event) what its later operations wait for.
using Operation = std::variant<std::monostate, Copy, Launch, Event>;

/// Throws invalid_argument unless the machine has the device.
const Device& checked_device(const Machine& machine, DeviceId device);

/// Throws invalid_argument unless there is a route (null: none) and the copy's shape makes sense.
void check_copy(const Machine& machine, const Copy& copy, const Route* route);

/// Throws invalid_argument unless `stream` is one of `streams`.
void check_stream(StreamId stream, std::size_t streams);

/// Throws invalid_argument unless the launch has a variant.
void check_launch(const Launch& launch);

/// What the runs of a copy let it reach on its route, in bytes a second; infinite if it is one run.
double limit_by_runs(const Machine& machine, const Route& route, const Copy& copy) noexcept;

/// Moves the bytes of a copy between addresses of this process.
void move_bytes(const Copy& copy) noexcept;

/// Bytes that a copy moves.
inline std::size_t bytes_of(const Copy& copy) noexcept { return copy.width_bytes * copy.height; }

/// Whether all its bytes lie together, at both ends.
inline bool is_one_run(const Copy& copy) noexcept {
  return copy.height <= 1 ||
         (copy.source_pitch == copy.width_bytes && copy.target_pitch == copy.width_bytes);
}

}  // namespace quadriga
