// SPDX-License-Identifier: BSD-3-Clause
// src/device/wiring.h: derives links and routes of a machine from its devices' properties.
#pragma once

#include <quadriga/machine.h>

#include <functional>
#include <span>

#include "device/nvml.h"

namespace quadriga {

/// How copies go from one device to another.
enum class PeerPath {
  host,    ///< By way of the host's memory: neither sees the other's.
  pcie,    ///< Across the PCIe of both.
  nvlink,  ///< Across NVLinks.
};

/// What pinned copies reach on so many lanes; 0 where generation or lanes are unknown.
double pcie_bytes_per_second(int generation, int lanes);

/// What a peer copy reaches on so many NVLinks of a rate; 0 where either is unknown.
double nvlink_bytes_per_second(int links, double bytes_per_second);

/// What stands in for readings that lack: rates of copies by compute capability.
double usual_pcie_rate(int major);
double usual_nvlink_rate(int major);

/// Adds links and routes between the host and all devices with memory of their own, in their order
/// (`gpus` holds a reading for each), and between each two as `reach(from, to)` says of their
/// indices. Links of devices are shared by all that they talk to; NVLinks that join two devices
/// alone are links of their own.
void add_links(Machine& machine, std::span<const GpuReading> gpus,
               const std::function<PeerPath(int, int)>& reach);

}  // namespace quadriga
