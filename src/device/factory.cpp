// SPDX-License-Identifier: BSD-3-Clause
// src/device/factory.cpp: a backend for a machine of devices of any kinds.
#include "device/factory.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include "device/joined/joined_backend.h"
#include "device/kinds.h"

namespace quadriga {

namespace {

std::unique_ptr<Backend> make_for(const Machine& machine, const BackendOptions& options) {
  const Device& first = machine.devices.front();
  const KindOfDevice* const kind = find_kind(first.kind);
  if (!kind)
    fail(Errc::unavailable, fmt::format("nothing drives devices of kind {}, as '{}'",
                                        static_cast<int>(first.kind), first.name));
  return kind->make(machine, options);
}

}  // namespace

std::unique_ptr<Backend> make_backend(const Machine& machine, const BackendOptions& options) {
  require(!machine.devices.empty(), "a machine without devices can't run anything");
  if (options.virtual_clock) return make_virtual_backend(machine, options.virtual_options);
  std::vector<MachinePart> parts = parts_by_kind(machine);
  if (parts.size() == 1) return make_for(machine, options);
  std::vector<JoinedPart> joined;
  for (MachinePart& part : parts) {
    std::unique_ptr<Backend> backend = make_for(part.machine, options);
    joined.push_back({std::move(part), std::move(backend)});
  }
  return join_backends(machine, std::move(joined));
}

}  // namespace quadriga
