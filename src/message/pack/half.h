// SPDX-License-Identifier: BSD-3-Clause
// src/message/pack/half.h: numbers of 16 bits as float and back, rounded to nearest, ties to even.
#pragma once

#include <bit>
#include <cstdint>

namespace quadriga::message {

/// The upper half of a float.
struct BFloat16 {
  std::uint16_t bits = 0;
  constexpr BFloat16() = default;
  constexpr explicit BFloat16(float value) noexcept {
    const auto wide = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = wide + 0x7fff + ((wide >> 16) & 1);
    // Not a number stays none: its payload's upper bit is set.
    bits = static_cast<std::uint16_t>((value != value ? wide | 0x400000 : rounded) >> 16);
  }
  constexpr float as_float() const noexcept {
    return std::bit_cast<float>(std::uint32_t{bits} << 16);
  }
};

/// IEEE 754's binary16.
struct Float16 {
  std::uint16_t bits = 0;
  constexpr Float16() = default;
  constexpr explicit Float16(float value) noexcept {
    const auto wide = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>((wide >> 16) & 0x8000);
    const std::uint32_t size = wide & 0x7fffffff;
    std::uint32_t narrow = 0;
    if (size >= 0x47800000)  // 65536 and more, infinite, or no number.
      narrow = size > 0x7f800000 ? 0x7e00 : 0x7c00;
    else if (size < 0x38800000)  // Subnormal: adding 1/2 rounds at the bit that must be the last.
      narrow = std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5f) - 0x3f000000;
    else
      narrow = (size - 0x38000000 + 0xfff + ((size >> 13) & 1)) >> 13;
    bits = static_cast<std::uint16_t>(sign | narrow);
  }
  constexpr float as_float() const noexcept {
    const std::uint32_t sign = std::uint32_t{bits} << 16 & 0x80000000;
    const std::uint32_t size = bits & 0x7fff;
    // Times 2^112 in float moves the exponent's bias, subnormal numbers included.
    float value = std::bit_cast<float>(size << 13) * 0x1p112f;
    if (size >= 0x7c00) value = std::bit_cast<float>((size << 13) | 0x7f800000);
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
  }
};

}  // namespace quadriga::message
