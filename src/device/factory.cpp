// SPDX-License-Identifier: BSD-3-Clause
// src/device/factory.cpp: the kinds of devices, and a backend for a machine of any of them.
#include "device/factory.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>

#include "device/cuda/cuda_backend.h"
#include "device/joined/joined_backend.h"

namespace quadriga {

const std::vector<KindOfDevice>& kinds_of_devices() {
  static const std::vector<KindOfDevice> kinds{
      {DeviceKind::cpu,
       [](const Machine& machine, const BackendOptions&) { return make_cpu_backend(machine); }},
      {DeviceKind::emulated,
       [](const Machine& machine, const BackendOptions& options) {
         return make_emulated_backend(machine, options.emulated_options);
       }},
      {DeviceKind::cuda,
       [](const Machine& machine, const BackendOptions&) { return make_cuda_backend(machine); }},
  };
  return kinds;
}

namespace {

std::unique_ptr<Backend> make_for(const Machine& machine, const BackendOptions& options,
                                  const std::vector<KindOfDevice>& kinds) {
  const DeviceKind kind = machine.devices.front().kind;
  const auto found = std::ranges::find(kinds, kind, &KindOfDevice::kind);
  if (found == kinds.end())
    fail(Errc::unavailable, fmt::format("nothing drives devices of kind {}, as '{}'",
                                        static_cast<int>(kind), machine.devices.front().name));
  return found->make(machine, options);
}

}  // namespace

std::unique_ptr<Backend> make_backend(const Machine& machine, const BackendOptions& options,
                                      const std::vector<KindOfDevice>& kinds) {
  require(!machine.devices.empty(), "a machine without devices can't run anything");
  if (options.virtual_clock) return make_virtual_backend(machine, options.virtual_options);
  std::vector<Part> parts = parts_by_kind(machine);
  if (parts.size() == 1) return make_for(machine, options, kinds);
  std::vector<JoinedPart> joined;
  for (Part& part : parts) {
    std::unique_ptr<Backend> backend = make_for(part.machine, options, kinds);
    joined.push_back({std::move(part), std::move(backend)});
  }
  return join_backends(machine, std::move(joined));
}

}  // namespace quadriga
