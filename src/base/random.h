// SPDX-License-Identifier: BSD-3-Clause
// src/base/random.h: a small, splittable, deterministic generator, identical on every platform.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>

namespace quadriga {

/// One step of splitmix64: a bijection that spreads near seeds far apart.
/// Source:  Steele, Lea, Flood, Fast splittable pseudorandom number generators, OOPSLA 2014.
constexpr std::uint64_t mix(std::uint64_t value) noexcept {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

/// xoshiro256**: a standard uniform random bit generator. Not for secrets; not thread-safe.
///
/// Distributions of the standard library differ by platform, so use below() and uniform().
/// Source:  Blackman and Vigna, Scrambled linear pseudorandom number generators, TOMS 47(4), 2021.
class Random {
 public:
  using result_type = std::uint64_t;

  constexpr explicit Random(std::uint64_t seed = 0) noexcept {
    for (std::uint64_t& word : state_) word = mix(seed++);
  }

  static constexpr result_type min() noexcept { return 0; }
  static constexpr result_type max() noexcept { return std::numeric_limits<result_type>::max(); }

  constexpr result_type operator()() noexcept {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  /// Uniform in [0, bound); 0 if bound is 0. The bias is under 2^-32 for bounds below 2^32.
  constexpr std::uint64_t below(std::uint64_t bound) noexcept {
    if (bound <= std::numeric_limits<std::uint32_t>::max()) {
      return (((*this)() >> 32) * bound) >> 32;
    }
    const std::uint64_t limit = max() - max() % bound;
    std::uint64_t value = (*this)();
    while (value >= limit) value = (*this)();
    return value % bound;
  }

  /// Uniform in [0, 1) with 53 random bits.
  constexpr double uniform() noexcept { return static_cast<double>((*this)() >> 11) * 0x1p-53; }

  /// Whether an event of this probability happens.
  constexpr bool chance(double probability) noexcept { return uniform() < probability; }

  /// A generator that goes its own way, for a worker or a part of a test; moves this one on.
  constexpr Random split() noexcept { return Random(mix((*this)())); }

 private:
  std::array<std::uint64_t, 4> state_{};
};

}  // namespace quadriga
