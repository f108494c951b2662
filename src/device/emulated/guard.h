// SPDX-License-Identifier: BSD-3-Clause
// src/device/emulated/guard.h: runs a variant with all device memory but its operands protected.
#pragma once

#include <span>

#include "device/backend.h"
#include "device/emulated_memory.h"

namespace quadriga {

/// Runs the variant on this thread; throws what it throws.
///
/// A variant that touches a page of `memories` without a byte of its operands is left at once by
/// siglongjmp: objects on its stack aren't destroyed, and what it holds stays held. That is fit for
/// finding bugs, which is what it is for. The variant must stay on this thread: a fault on another
/// one ends the process as usual.
/// Errors:  task_failed, naming the codelet, the device and the offset it touched.
void run_guarded(const Launch& launch, std::span<EmulatedMemory> memories);

}  // namespace quadriga
