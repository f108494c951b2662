// SPDX-License-Identifier: BSD-3-Clause
// src/message/port_machine.h: what a port needs to know of the machine that its devices belong to.
#pragma once

#include <quadriga/machine.h>

namespace quadriga::message {

/// Copies within a device have a way of their own, which no machine describes: the same with it.
Machine with_own_routes(Machine machine);

/// That machine of a computer's GPUs which has only this one.
/// Errors: unavailable without that device.
Machine machine_of_cuda(int ordinal);

/// Bytes a second at which a device's memory is filled from that of others, the host's apart; 0:
/// there are none.
double best_rate_into(const Machine& machine, SpaceId space);

}  // namespace quadriga::message
