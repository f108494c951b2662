// SPDX-License-Identifier: BSD-3-Clause
// src/device/backend.cpp: what backends refuse that don't offer it.
#include "device/backend.h"

#include <quadriga/error.h>

namespace quadriga {

std::byte* Backend::import_memory(DeviceId, const MemoryHandle&, int) {
  fail(Errc::unavailable, "this kind of device opens no memory of other processes");
}

}  // namespace quadriga
