// SPDX-License-Identifier: BSD-3-Clause
// tests/gpu/sleep.h: a kernel that takes a stated time.
#pragma once

namespace quadriga {

/// Queues a kernel of one thread that runs for some milliseconds.
void queue_sleep(void* stream, int milliseconds);

/// Queues one that writes to an address that no device has.
void queue_fault(void* stream);

}  // namespace quadriga
