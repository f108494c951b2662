// SPDX-License-Identifier: BSD-3-Clause
// src/device/device_full.h: what a variant throws that found too little memory on its device.
#pragma once

#include <quadriga/error.h>

#include <string>

namespace quadriga {

/// Thrown by a variant that has queued nothing: once the engine has freed some of the device's
/// memory, the variant is called again.
class DeviceFull final : public Error {
 public:
  explicit DeviceFull(const std::string& message,
                      std::source_location where = std::source_location::current())
      : Error(Errc::task_failed, message, where) {}
};

}  // namespace quadriga
