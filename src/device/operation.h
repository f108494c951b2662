// SPDX-License-Identifier: BSD-3-Clause
// src/device/operation.h: operations in a stream's queue, and the checks that all backends share.
#pragma once

#include <quadriga/machine.h>

#include <utility>
#include <variant>

#include "device/backend.h"
#include "device/hardware_queues.h"

namespace quadriga {

/// An operation of a stream, or (an Event) what its later operations wait for.
using Operation = std::variant<std::monostate, Copy, Launch, Event>;

/// Which of a hardware queue's orders a copy or a launch enters.
inline HardwareQueues::Kind kind_of(const Operation& operation) noexcept {
  return std::holds_alternative<Copy>(operation) ? HardwareQueues::Kind::copy
                                                 : HardwareQueues::Kind::kernel;
}

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

/// Calls visit(const Copy&) for the copy of each of its pieces, or for itself if it has none.
template <class Visit>
void for_each_piece(const Copy& copy, Visit&& visit) {
  if (!copy.pieces) return visit(copy);
  const bool in = copy.from == host_space;
  Copy part = copy;
  part.pieces.reset();
  for (const Piece& piece : *copy.pieces) {
    part.width_bytes = piece.width_bytes;
    (in ? part.target_pitch : part.source_pitch) = piece.pitch;
    if (in)
      part.target = piece.memory;
    else
      part.source = piece.memory;
    visit(std::as_const(part));
    if (in)
      part.source += piece.width_bytes;
    else
      part.target += piece.width_bytes;
  }
}

/// Moves the bytes of a copy between addresses of this process.
void move_bytes(const Copy& copy) noexcept;

/// Bytes that a copy moves.
inline std::size_t bytes_of(const Copy& copy) noexcept { return copy.width_bytes * copy.height; }

/// Whether all its bytes lie together, at both ends.
inline bool is_one_run(const Copy& copy) noexcept {
  if (copy.pieces) return false;
  return copy.height <= 1 ||
         (copy.source_pitch == copy.width_bytes && copy.target_pitch == copy.width_bytes);
}

}  // namespace quadriga
