// SPDX-License-Identifier: BSD-3-Clause
// src/memory/space_resources.h: the arena and the copy streams of a memory space, as numbers.
#pragma once

#include <quadriga/machine.h>

#include <cstddef>
#include <vector>

#include "device/backend.h"

namespace quadriga {

/// What one memory space is given to work with.
struct SpaceResources {
  DeviceId device = no_device;  ///< No_device: the host's, or one that no device of ours has.
  std::byte* base = nullptr;    ///< Of the arena.
  std::size_t bytes = 0;
  StreamId in = 0;              ///< Copies from the host.
  StreamId out = 0;             ///< Copies to the host.
  std::vector<StreamId> peers;  ///< Copies from other devices, by source space; where a route is.
  bool is_file = false;  ///< Nothing runs there; what leaves the host's buffers may go there.
  int node = any_node;   ///< The host's nearest.
};

}  // namespace quadriga
