// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/real.h: counts of elements, tiles and bytes in sums of seconds.
#pragma once

#include <cstdint>

namespace quadriga::linalg {

constexpr double real(std::int64_t count) noexcept { return static_cast<double>(count); }

}  // namespace quadriga::linalg
