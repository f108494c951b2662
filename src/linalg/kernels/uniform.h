// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/uniform.h: the numbers of a random matrix from their place in it, the same on
// every device.
#pragma once

#include "base/random.h"

#include <complex>
#include <cstdint>

namespace quadriga::kernels {

inline constexpr std::uint64_t golden = 0x9e3779b97f4a7c15u;

/// Each column has a key; the elements of a column are one splittable stream.
constexpr std::uint64_t column_key(std::uint64_t seed, std::int64_t column) noexcept {
  return mix(mix(seed) + golden * static_cast<std::uint64_t>(column));
}

constexpr std::uint64_t element_bits(std::uint64_t key, std::int64_t row) noexcept {
  return mix(key + golden * static_cast<std::uint64_t>(row));
}

/// Uniform in [-0.5, 0.5), every bit of the mantissa drawn.
constexpr void uniform(std::uint64_t bits, double& out) noexcept {
  out = static_cast<double>(bits >> 11) * 0x1p-53 - 0.5;
}
constexpr void uniform(std::uint64_t bits, float& out) noexcept {
  out = static_cast<float>(static_cast<std::int32_t>(bits >> 40)) * 0x1p-24f - 0.5f;
}

template <class Real>
constexpr void uniform(std::uint64_t bits, std::complex<Real>& out) noexcept {
  Real real{};
  Real imag{};
  uniform(bits, real);
  uniform(mix(bits), imag);
  out = {real, imag};
}

}  // namespace quadriga::kernels
