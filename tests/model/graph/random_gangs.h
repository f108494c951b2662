// SPDX-License-Identifier: BSD-3-Clause
// tests/model/graph/random_gangs.h: random programs of tasks that start together, on devices that
// hold the operands of one task each.
//
// Under a real clock the bodies of a gang wait for each other, as kernels of a collective operation
// do: if one were issued without the others, or two gangs in two orders, they would wait for ever.
#pragma once

#include <cstdint>
#include <string>

#include "model/graph/random_program.h"

namespace quadriga {

struct GangOptions {
  bool virtual_clock = false;
  DeviceKind kind = DeviceKind::emulated;
  Kernel (*adapter)(Kernel) = nullptr;  ///< Makes a CUDA variant of a body.
  double fault_probability = 0;         ///< Of a kernel, which doesn't run then.
  bool loses_device = false;
};

/// Runs the program of a seed; empty, or what was wrong. With faults whatever ends in time is good.
std::string run_gangs(std::uint64_t seed, const GangOptions& options);

/// Gangs that come, start and end by chance, with claims to room on devices alone; empty, or what
/// was wrong.
std::string run_claims(std::uint64_t seed);

}  // namespace quadriga
