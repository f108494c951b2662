// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/numbers.h: numbers in text, as matrix files have them by the million.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace quadriga::sparse {

/// What was found in a text.
struct NumbersRead {
  std::int64_t count = 0;    ///< Numbers, those beyond the end of `out` included.
  std::int64_t bad_at = -1;  ///< Where something else begins; -1: nowhere.
};

/// Reads numbers with white space between them, as many as fit. A sign may stand before each.
NumbersRead read_numbers(std::string_view text, std::span<double> out) noexcept;

}  // namespace quadriga::sparse
