// SPDX-License-Identifier: BSD-3-Clause
// src/engine/libraries.h: creates library objects on a device while its memory is free.
#pragma once

#include <quadriga/machine.h>

#include <span>
#include <vector>

#include "device/backend.h"
#include "engine/device_spaces.h"

namespace quadriga {

/// Handles and workspaces of libraries (device/preparation.h) on the compute streams of devices
/// whose memory is scarce. Nothing else is queued yet, and no arena taken. Returns what they took,
/// by device.
///
/// Errors:  unavailable if a device has too little memory for them, naming the device and both
///          sizes. Libraries that aren't there are left to whoever needs them.
std::vector<std::size_t> make_library_handles(
    Backend& backend, const Machine& machine, const DeviceSpaces& spaces,
    std::span<const std::vector<StreamId>> kernel_streams);

}  // namespace quadriga
