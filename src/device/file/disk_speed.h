// SPDX-License-Identifier: BSD-3-Clause
// src/device/file/disk_speed.h: how fast the disk under a folder takes and gives bytes.
#pragma once

#include <optional>
#include <string>

namespace quadriga {

/// Rates of one thread that writes large blocks until they are on the disk, and of one that reads
/// them from there again.
struct DiskSpeed {
  double write_bytes_per_second = 0;
  double read_bytes_per_second = 0;
};

/// Measured by a file without a name in the folder: at most 64 MiB, and about a tenth of a second
/// for each of the two, or as long as the disk takes for a block. Each disk is measured once in a
/// process. Nothing if no file can be made there, or the disk is full. Any thread.
std::optional<DiskSpeed> disk_speed(const std::string& folder);

}  // namespace quadriga
