// SPDX-License-Identifier: BSD-3-Clause
// src/device/recorded.h: variants that are recorded once and then replayed.
#pragma once

#include <quadriga/codelet.h>

namespace quadriga {

/// A CUDA variant that does on its device what the given one does, and leaves the host out of it:
/// the second time that it gets the same operands and workspace, at the same addresses, and the
/// same parameters, what the given one queues is recorded as a graph, which is launched from then
/// on. Operands' contents may change. Any thread.
///
/// The given variant only queues kernels and copies, on arguments.stream alone, which are the same
/// for the same arguments; it sets no on_end. What can't be recorded is queued each time, and a
/// warning says why. It may be called twice for one launch then.
///
/// Cost:    a recording takes about as long as queueing it twice, and is kept as long as the
///          variant, unless many others came after it.
/// Errors:  as the given variant's. Builds without CUDA return it as it is.
Kernel recorded(Kernel variant);

}  // namespace quadriga
