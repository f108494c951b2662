// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/real.h: counts of elements, tiles and bytes in sums of seconds, and no end of them.
#pragma once

#include <cstdint>
#include <limits>

namespace quadriga::linalg {

/// Seconds of what can't be done.
inline constexpr double endless = std::numeric_limits<double>::infinity();

constexpr double real(std::int64_t count) noexcept { return static_cast<double>(count); }

}  // namespace quadriga::linalg
