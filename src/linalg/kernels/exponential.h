// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/exponential.h: exp(x) for x <= 0 without branches or calls, so that loops
// vectorize.
#pragma once

#include <bit>
#include <cstdint>

namespace quadriga::kernels {

/// exp(x) for x <= 0 to about one unit in the last place; 0 where it is below the normal numbers.
///
/// x = n*ln 2 + r with |r| <= ln(2)/2; exp(r) by its series, times 2^n put into the exponent's
/// bits. Source: Muller, Elementary Functions, 3rd edition, 2016, chapter 11 (range reduction).
[[gnu::always_inline]] constexpr double exp_of_negative(double x) noexcept {
  constexpr double lowest = -708.0;
  constexpr double to_integer = 0x1.8p52;  // adding it leaves the integer in the lowest bits
  constexpr double log2_e = 1.4426950408889634;
  constexpr double ln2_high = 0x1.62e42feep-1;  // 33 bits: n*ln2_high is exact
  constexpr double ln2_low = 0x1.a39ef35793c76p-33;
  const double cut = x < lowest ? lowest : x;
  const double shifted = cut * log2_e + to_integer;
  const double n = shifted - to_integer;
  const double r = (cut - n * ln2_high) - n * ln2_low;
  double series = 1.0 / 6227020800;  // 1/13!
  series = series * r + 1.0 / 479001600;
  series = series * r + 1.0 / 39916800;
  series = series * r + 1.0 / 3628800;
  series = series * r + 1.0 / 362880;
  series = series * r + 1.0 / 40320;
  series = series * r + 1.0 / 5040;
  series = series * r + 1.0 / 720;
  series = series * r + 1.0 / 120;
  series = series * r + 1.0 / 24;
  series = series * r + 1.0 / 6;
  series = series * r + 0.5;
  const double result = 1 + (r + r * r * series);
  const std::uint64_t exponent = (std::bit_cast<std::uint64_t>(shifted) + 1023) << 52;
  return x < lowest ? 0.0 : result * std::bit_cast<double>(exponent);
}

}  // namespace quadriga::kernels
