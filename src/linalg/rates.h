// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/rates.h: kernel times for machines that have no table.
#pragma once

#include <quadriga/machine.h>
#include <quadriga/types.h>

namespace quadriga::linalg {

/// The machine with times of the four kernels of a type for every device: those that are missing
/// are measured on this computer, once a process.
Machine with_rates(Machine machine, DType dtype);

}  // namespace quadriga::linalg
