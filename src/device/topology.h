// SPDX-License-Identifier: BSD-3-Clause
// src/device/topology.h: NUMA nodes of the host, and where devices are plugged in.
#pragma once

#include <quadriga/machine.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quadriga {

/// Understands the kernel's lists of processors, as "0-3,8"; nothing if it is none.
std::optional<std::vector<int>> parse_processors(std::string_view list);
/// The same list as text; the processors in increasing order.
std::string format_processors(const std::vector<int>& processors);

/// NUMA nodes as hwloc's library sees them; none if it can't be opened or is of another version
/// than the header that this was built with.
std::vector<Node> nodes_by_hwloc(const char* library = "libhwloc.so.15");
/// The same by the kernel's files alone; one node where they tell of none.
std::vector<Node> nodes_by_files(const std::string& sys = "/sys");

/// Where a PCIe device is plugged in; 0 and -1 where the kernel doesn't say.
struct PciPlace {
  int generation = 0;  ///< The best that the device can do; it uses less while it saves power.
  int lanes = 0;
  int node = -1;
};
PciPlace pci_place(const std::string& address, const std::string& sys = "/sys");

}  // namespace quadriga
