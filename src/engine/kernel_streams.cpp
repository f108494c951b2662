// SPDX-License-Identifier: BSD-3-Clause
// src/engine/kernel_streams.cpp: how many streams of which kind each device gets.
#include "engine/kernel_streams.h"

#include <fmt/format.h>

#include <algorithm>

namespace quadriga {

std::vector<std::vector<StreamId>> make_kernel_streams(Backend& backend, const Machine& machine,
                                                       RunRecord& record) {
  std::vector<std::vector<StreamId>> streams(machine.devices.size());
  for (DeviceId d = 0; d < machine.devices.size(); ++d) {
    const Device& device = machine.devices[d];
    const bool is_cpu = device.kind == DeviceKind::cpu;
    const int count = std::max(1, is_cpu ? device.cores : device.compute_streams);
    for (int i = 0; i < count; ++i) {
      const StreamKind kind = is_cpu || i == 0 ? StreamKind::compute : StreamKind::panel;
      streams[d].push_back(backend.create_stream(d, kind));
      record.open(d, streams[d].back(), StreamKind::compute,
                  count == 1 ? "compute" : fmt::format("compute {}", i));
    }
  }
  return streams;
}

}  // namespace quadriga
