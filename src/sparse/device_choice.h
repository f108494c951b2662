// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/device_choice.h: what iterations of several devices wait for each other.
#pragma once

#include <quadriga/engine.h>

#include <cstddef>
#include <span>

namespace quadriga::sparse {

/// Seconds of some bytes to the first of these devices and back, from the one that is furthest.
double slowest_round_trip(const Machine& machine, std::span<const DeviceId> devices);

/// Seconds that an iteration of several devices takes beyond reading the matrix, by the machine's
/// figures, which know no more than links and launches: the sums of products and of steps go to one
/// device, and what follows from them comes back, one after the other; tasks are queued for each
/// part. A single device's iterations wait for nobody.
double waiting_seconds(const Machine& machine, std::span<const DeviceId> devices);

/// The same of so many devices of the engine as it is: iterations of a system that is too small to
/// take any time, recorded where the solver's are. Measured once in a process for a machine: some
/// 20 ms, or ten times that where programs of several devices are recorded first.
double measured_waiting(Engine& engine, std::size_t devices);

}  // namespace quadriga::sparse
