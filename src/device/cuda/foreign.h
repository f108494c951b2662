// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/foreign.h: memory and streams of other libraries, such as CuPy and PyTorch.
#pragma once

#include <cstdint>
#include <memory>

#include "device/backend.h"

namespace quadriga::cuda {

/// The runtime's number of the device that holds an address; -1: the host's memory.
int ordinal_of(const void* memory);

/// Waits in the calling thread until what is queued on a stream has ended: 0 stands for all streams
/// of the device, 1 for the legacy default stream, 2 for the thread's, others are handles.
void synchronize(int ordinal, std::uintptr_t stream);

/// The end of what is queued on such a stream of a device; null if it was reached. Waits for it
/// where no event stands for it: for all streams, and for a stream of another device.
std::unique_ptr<ForeignEvent> mark(int ordinal, std::uintptr_t stream);

/// What others queue on such a stream from now on waits for what a stream of ours holds. False for
/// 0, and for 2, which is another stream on each thread.
bool lead(int ordinal, void* stream, std::uintptr_t other);

}  // namespace quadriga::cuda
