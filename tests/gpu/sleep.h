// SPDX-License-Identifier: BSD-3-Clause
// tests/gpu/sleep.h: a kernel that takes a stated time.
#pragma once

#include <cstddef>

namespace quadriga {

/// Queues a kernel of one thread that runs for some milliseconds.
void queue_sleep(void* stream, int milliseconds);

/// Bytes that a copy takes some milliseconds for.
std::size_t bytes_for_milliseconds();

/// Queues one that writes to an address that no device has.
void queue_fault(void* stream);

}  // namespace quadriga
