// SPDX-License-Identifier: BSD-3-Clause
// src/engine/workspaces.cpp: asks codelets, and allocates as an arena aligns.
#include "engine/workspaces.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "device/kinds.h"
#include "memory/arena.h"

namespace quadriga {
namespace {

constexpr std::align_val_t alignment{Arena::usual_alignment};

}  // namespace

void note_workspaces(Task& task, const Machine& machine) {
  std::vector<View> shapes;
  for (const OperandSlot& slot : task.slots()) {
    const Datum& datum = *slot.datum;
    shapes.push_back({nullptr, datum.rows, datum.cols, datum.rows, datum.dtype});
  }
  const Arguments arguments{shapes, task.params()};
  const std::size_t devices = machine.devices.size();
  auto bytes = std::make_unique<std::size_t[]>(devices);
  std::size_t most = 0;
  for (std::size_t device = 0; device < devices; ++device) {
    const DeviceKind kind = machine.devices[device].kind;
    if (properties_of(kind).only_stores) continue;  // no task runs there
    const bool is_known = device > 0 && machine.devices[device - 1].kind == kind;
    bytes[device] = is_known ? bytes[device - 1] : task.codelet->workspace(arguments, kind);
    most = std::max(most, bytes[device]);
  }
  if (most == 0) return;
  task.has_extra = true;
  task.extra.workspaces = std::move(bytes);
}

HostWorkspace::HostWorkspace(const Task& task, std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  memory_ = static_cast<std::byte*>(::operator new(bytes, alignment, std::nothrow));
  if (!memory_)
    fail(Errc::too_large, fmt::format("a task '{}' needs a workspace of {} bytes, and the host has "
                                      "no more memory",
                                      task.codelet->name, bytes));
}

HostWorkspace::~HostWorkspace() { ::operator delete(memory_, alignment); }

}  // namespace quadriga
