// SPDX-License-Identifier: BSD-3-Clause
// src/device/emulated/virtual_times.h: what kernels take under a virtual clock, alone and beside
// others, by the machine's table.
//
// Pure: one thread, no clock.
#pragma once

#include <quadriga/machine.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "device/at_once.h"
#include "device/backend.h"

namespace quadriga {

/// Durations are rounded up to whole nanoseconds, less what is but the rounding of a double.
inline Nanoseconds whole_nanoseconds(double nanoseconds) {
  return static_cast<Nanoseconds>(std::max(0.0, std::ceil(nanoseconds - 1e-3)));
}

/// Of a kernel, as parts of its speed alone, when 1, 2, … run at once.
using KernelSpeeds = std::array<double, most_at_once>;
/// They take turns.
inline constexpr KernelSpeeds taking_turns{1, 1.0 / 2, 1.0 / 3};

class VirtualTimes {
 public:
  /// `machine` must outlive this. `noise`: durations are multiplied by a factor from [1 - noise,
  /// 1 + noise], which `seed` and the operation's number determine.
  VirtualTimes(const Machine& machine, double noise, std::uint64_t seed);

  /// Seconds that a kernel takes alone, with its launch.
  /// Errors: unavailable if it isn't known, invalid_argument if it is no time.
  double seconds(const Launch& launch, const Device& device) const;
  /// By the table's rows "dgemm*2" and "dgemm*3"; a kernel is slowed down by others, and never more
  /// than if they took turns.
  KernelSpeeds speeds(const Launch& launch, const Device& device) const;
  double with_noise(double duration, std::uint64_t sequence) const noexcept;

 private:
  const Machine& machine_;
  const bool tells_at_once_;  ///< The table has rows of kernels at once.
  const double noise_;
  const std::uint64_t seed_;
};

}  // namespace quadriga
