// SPDX-License-Identifier: BSD-3-Clause
// src/device/joined/joined_backend.h: joins several backends, each for some devices of a machine.
#pragma once

#include <memory>
#include <vector>

#include "device/backend.h"
#include "device/joined/part.h"

namespace quadriga {

/// A backend for a part of a machine.
struct JoinedPart {
  MachinePart part;
  std::unique_ptr<Backend> backend;
};

/// Drives a machine by the backends of its parts, which none of their clocks is virtual.
///
/// Streams of a part wait for events of another one here, until that has ended. Copies between
/// memories of two parts don't exist. What one part loses the others don't notice.
std::unique_ptr<Backend> join_backends(Machine machine, std::vector<JoinedPart> parts);

}  // namespace quadriga
