// SPDX-License-Identifier: BSD-3-Clause
// tests/gpu/host_body.h: CUDA variants whose bodies run on the host, in the order of their stream.
#pragma once

#include <quadriga/codelet.h>

namespace quadriga {

/// A variant that copies its operands to the host, runs the body on them, and copies them back.
/// Only dense operands without a margin. What the body throws is the operation's failure.
Kernel on_stream(Kernel body);

}  // namespace quadriga
