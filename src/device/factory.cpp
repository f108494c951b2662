// SPDX-License-Identifier: BSD-3-Clause
// src/device/factory.cpp: chooses the backend for a machine.
#include "device/factory.h"

#include <quadriga/error.h>

#include <algorithm>

#include "device/cuda/cuda_backend.h"

namespace quadriga {

std::unique_ptr<Backend> make_backend(const Machine& machine, const BackendOptions& options) {
  const auto has = [&machine](DeviceKind kind) {
    return std::ranges::find(machine.devices, kind, &Device::kind) != machine.devices.end();
  };
  require(!machine.devices.empty(), "a machine without devices can't run anything");
  if (options.virtual_clock) return make_virtual_backend(machine, options.virtual_options);
  if (has(DeviceKind::cuda) && has(DeviceKind::emulated)) {
    fail(Errc::unavailable, "one engine can't drive CUDA devices and emulated ones");
  }
  if (has(DeviceKind::cuda)) return make_cuda_backend(machine);
  if (has(DeviceKind::emulated)) return make_emulated_backend(machine, options.emulated_options);
  return make_cpu_backend(machine);
}

}  // namespace quadriga
