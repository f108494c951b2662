// SPDX-License-Identifier: BSD-3-Clause
// src/engine/workspaces.h: memory that tasks need beside their operands: how much, and on the
// host's cores, which have no arena, a block of it.
#pragma once

#include <quadriga/machine.h>

#include <cstddef>
#include <span>

#include "graph/task.h"

namespace quadriga {

/// Asks the task's codelet for each device, and notes the answers in the task. Before others know
/// the task; by the thread that submits it. Throws what the codelet's function does.
void note_workspaces(Task& task, const Machine& machine);

/// A block for one call of a body on a core.
class HostWorkspace {
 public:
  /// Of no bytes: none. Errors: too_large naming the codelet and the bytes if the host has no more.
  HostWorkspace(const Task& task, std::size_t bytes);
  ~HostWorkspace();
  HostWorkspace(const HostWorkspace&) = delete;
  HostWorkspace& operator=(const HostWorkspace&) = delete;
  std::span<std::byte> memory() const noexcept { return {memory_, bytes_}; }

 private:
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace quadriga
