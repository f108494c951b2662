// SPDX-License-Identifier: BSD-3-Clause
// src/device/file/file_space.cpp: the device, its links and its routes.
#include "device/file/file_space.h"

namespace quadriga {
namespace {

void join(Machine& machine, SpaceId from, SpaceId to, std::string link, double bytes_per_second) {
  machine.routes.push_back(
      {.from = from, .to = to, .links = {static_cast<int>(machine.links.size())}});
  machine.links.push_back({.name = std::move(link), .bytes_per_second = bytes_per_second});
}

}  // namespace

void add_file_space(Machine& machine, const std::string& path, std::size_t bytes, DiskSpeed speed) {
  Device file;
  file.name = "spill";
  file.kind = DeviceKind::file;
  file.space = static_cast<SpaceId>(machine.spaces());
  file.memory_bytes = bytes;
  file.path = path;
  machine.devices.push_back(file);
  join(machine, host_space, file.space, "spill write", speed.write_bytes_per_second);
  join(machine, file.space, host_space, "spill read", speed.read_bytes_per_second);
}

}  // namespace quadriga
