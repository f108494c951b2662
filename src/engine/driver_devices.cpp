// SPDX-License-Identifier: BSD-3-Clause
// src/engine/driver_devices.cpp: a device's reserves for libraries.
#include "engine/driver_devices.h"

#include <fmt/format.h>

#include "base/units.h"

namespace quadriga {

bool DriverDevices::make_room(DeviceId device) {
  const std::size_t given = spaces_.give_reserve(machine_.devices[device].space);
  if (given == 0) return false;
  waiters_.notice(
      fmt::format("device '{}': a library found no memory there, gets {} that the engine had kept "
                  "for that, and tries again",
                  machine_.devices[device].name, format_bytes(static_cast<double>(given))));
  return true;
}

}  // namespace quadriga
