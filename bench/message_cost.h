// SPDX-License-Identifier: BSD-3-Clause
// bench/message_cost.h: what a message between memory of two devices costs beside its bytes.
#pragma once

#include <quadriga/machine.h>

namespace quadriga::bench {

/// Measured with two ranks, threads of this process, each at a device of its own if there are two:
/// the median of `repeat` times. 0 of a machine whose devices have no memory of their own.
/// Errors: those of the devices.
MessageCost message_cost(const Machine& machine, int repeat);

}  // namespace quadriga::bench
