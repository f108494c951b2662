// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/accesses.h: short names for what codelets do with their operands.
#pragma once

#include <quadriga/types.h>

namespace quadriga::sparse::accesses {

inline constexpr Access in = Access::read;
inline constexpr Access out = Access::write;
inline constexpr Access both = Access::update;

}  // namespace quadriga::sparse::accesses
