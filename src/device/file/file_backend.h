// SPDX-License-Identifier: BSD-3-Clause
// src/device/file/file_backend.h: files as memory spaces: copies to and from the host, no kernels.
#pragma once

#include <quadriga/machine.h>

#include <memory>

#include "device/backend.h"

namespace quadriga {

/// Drives devices of kind `file`, each a file of up to `memory_bytes` in the temporary folder,
/// or where the device's `path` says, which must not exist; it is removed at once and its blocks
/// are given back when the backend ends, however that comes about. What allocate() returns stands
/// for a place in the file and can't be read or written by anybody. Copies run on threads of their
/// own, one a stream, by calls that read and write at a place. The file grows as it is written.
/// Launches are refused.
///
/// Errors:  io naming the file if it can't be made or its disk is smaller; too_large if the
///          addresses can't be had. A copy that fails, as on a full disk, completes with io.
std::unique_ptr<Backend> make_file_backend(Machine machine);

}  // namespace quadriga
