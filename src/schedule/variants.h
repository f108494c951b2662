// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/variants.h: which variant of a codelet runs where, and which devices are meant to
// run it.
#pragma once

#include <quadriga/codelet.h>
#include <quadriga/machine.h>

#include <algorithm>

namespace quadriga {

inline const Kernel& variant_for(const Codelet& codelet, DeviceKind kind) noexcept {
  return kind == DeviceKind::cuda ? codelet.cuda : codelet.cpu;
}

inline bool has_cuda(const Machine& machine) noexcept {
  const auto is_cuda = [](const Device& device) { return device.kind == DeviceKind::cuda; };
  return std::ranges::any_of(machine.devices, is_cuda);
}

/// Whether a device is meant to run it, as long as no other is lost.
inline bool offers(const Machine& machine, const Device& device, const Codelet& codelet) noexcept {
  if (!variant_for(codelet, device.kind)) return false;
  if (device.kind == DeviceKind::cuda) return true;
  const bool is_cpu = device.kind == DeviceKind::cpu;
  if (is_cpu && device.cores > 0) return true;
  // A CPU without cores is there for what needs the host, and for nothing else.
  const bool needs_host = codelet.host_only && !(codelet.cuda && has_cuda(machine));
  return is_cpu == needs_host;
}

}  // namespace quadriga
