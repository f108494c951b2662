// SPDX-License-Identifier: BSD-3-Clause
// src/engine/libraries.cpp: prepares a device's streams.
#include "engine/libraries.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <optional>
#include <string>

#include "base/log.h"
#include "base/units.h"
#include "device/kinds.h"
#include "device/preparation.h"

namespace quadriga {
namespace {

std::string in_words(std::size_t bytes) { return format_bytes(static_cast<double>(bytes)); }

/// Returns what it takes.
std::size_t prepare_device(Backend& backend, const Device& described, DeviceId device,
                           std::span<const StreamId> streams) {
  const std::optional<Kernel> prepare = preparation(variants_of(described.kind));
  if (!prepare) return 0;
  try {
    const std::size_t before = backend.free_bytes(device).value_or(0);
    for (const StreamId stream : streams) backend.prepare(stream, *prepare);
    const std::size_t taken = before - std::min(before, backend.free_bytes(device).value_or(0));
    log(LogLevel::info,
        fmt::format("device '{}': libraries took {} of the {} that were free, before the arena",
                    described.name, in_words(taken), in_words(before)));
    return taken;
  } catch (const Error& cause) {
    if (cause.code() == Errc::unavailable) return 0;  // There are no such libraries.
    fail(cause.code() == Errc::task_failed ? Errc::unavailable : cause.code(),
         fmt::format("device '{}': {}", described.name, cause.what()));
  }
}

}  // namespace

std::vector<std::size_t> make_library_handles(
    Backend& backend, const Machine& machine, const DeviceSpaces& spaces,
    std::span<const std::vector<StreamId>> kernel_streams) {
  std::vector<std::size_t> taken(machine.devices.size(), 0);
  for (DeviceId device = 0; device < machine.devices.size(); ++device)
    if (spaces.is_scarce(machine, device))
      taken[device] =
          prepare_device(backend, machine.devices[device], device, kernel_streams[device]);
  return taken;
}

}  // namespace quadriga
