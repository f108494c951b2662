// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/variants.h: which variant of a codelet runs where, and which devices are meant to
// run it.
#pragma once

#include <quadriga/codelet.h>
#include <quadriga/machine.h>

#include <algorithm>

#include "device/kinds.h"
#include "graph/task.h"

namespace quadriga {

inline const Kernel& variant_for(const Codelet& codelet, DeviceKind kind) noexcept {
  return codelet.variant(variants_of(kind));
}

/// Whether what runs on devices of a kind is queued on their streams, and not the CPU's variant.
inline bool queues(DeviceKind kind) noexcept { return variants_of(kind) != DeviceKind::cpu; }

/// Whether a device is meant to run it, as long as no other is lost.
inline bool offers(const Machine& machine, const Device& device, const Codelet& codelet) noexcept {
  if (!variant_for(codelet, device.kind)) return false;
  if (queues(device.kind)) return true;
  const bool is_cpu = device.kind == DeviceKind::cpu;
  // What detaches there and on devices chooses for itself.
  if (is_cpu && (device.cores > 0 || (codelet.detaches && !codelet.host_only))) return true;
  // A CPU without cores is there for what needs the host, and for nothing else.
  const auto runs_elsewhere = [&](const Device& other) {
    return queues(other.kind) && variant_for(codelet, other.kind);
  };
  const bool needs_host =
      codelet.host_only && std::ranges::none_of(machine.devices, runs_elsewhere);
  return is_cpu == needs_host;
}

/// Throws unavailable: no device that the task may run on has a variant of its codelet.
[[noreturn]] void refuse_without_variant(const Machine& machine, const Task& task);

}  // namespace quadriga
