// SPDX-License-Identifier: BSD-3-Clause
// src/device/file/file_space.h: a file as a further memory space of a machine.
#pragma once

#include <quadriga/machine.h>

#include <cstddef>
#include <string>

#include "device/file/disk_speed.h"

namespace quadriga {

/// Adds a device of kind `file`, named "spill", which lies at a path and holds so many bytes, with
/// a link for each direction between it and the host.
void add_file_space(Machine& machine, const std::string& path, std::size_t bytes, DiskSpeed speed);

}  // namespace quadriga
