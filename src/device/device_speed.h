// SPDX-License-Identifier: BSD-3-Clause
// src/device/device_speed.h: what of an accelerator decides how fast it computes.
#pragma once

#include <string_view>

namespace quadriga {

struct DeviceSpeed {
  int major = 0;  ///< Compute capability.
  int minor = 0;
  int processors = 0;
  double clock_hertz = 0;
  double memory_bytes_a_second = 0;
  bool operator==(const DeviceSpeed&) const = default;
};

/// That of the first device of a description, its member "speed": {"capability": "9.0",
/// "processors": n, "clock": Hz, "memory_rate": bytes/s}.
/// Errors: invalid_argument naming the member that is absent or isn't positive.
DeviceSpeed speed_of_first(std::string_view description);

}  // namespace quadriga
