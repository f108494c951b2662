// SPDX-License-Identifier: BSD-3-Clause
// src/device/at_once.h: names of a kernel table's rows for kernels that run at once.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace quadriga {

inline constexpr std::size_t most_at_once = 3;

/// The row "dgemm*2": seconds that each of two takes when both run at once.
inline std::string row_at_once(std::string_view kernel, std::size_t count) {
  return std::string(kernel) + '*' + std::to_string(count);
}

}  // namespace quadriga
