// SPDX-License-Identifier: BSD-3-Clause
// src/device/memory_handle.h: how one process names memory of a device to another.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace quadriga {

enum class HandleKind : std::uint8_t {
  none,
  memory_file,  ///< A sealed memory file; of emulated devices.
  cuda_ipc,     ///< What cudaIpcGetMemHandle gives.
  cuda_file,    ///< A descriptor of memory that cuMemCreate made.
};

/// An allocation of a device of one process, as another one opens it: plain bytes, for messages.
struct MemoryHandle {
  std::uint64_t id = 0;          ///< Of the allocation: a later one at its address has another.
  std::uint64_t bytes = 0;       ///< Of the allocation.
  std::uint64_t offset = 0;      ///< Where it begins in the file.
  std::int32_t descriptor = -1;  ///< Of the file, in the process that owns the memory.
  std::uint16_t device = 0;      ///< As that process counts.
  HandleKind kind = HandleKind::none;
  std::uint8_t unused = 0;
  std::array<std::byte, 64> key{};  ///< Of kind cuda_ipc.
};
static_assert(sizeof(MemoryHandle) == 96);

/// A handle and where in its allocation an address is; or why there is none.
struct MemoryExport {
  MemoryHandle handle;
  std::uint64_t offset = 0;
  std::string refusal;  ///< Empty if there is a handle.

  static MemoryExport refused(std::string why) {
    MemoryExport made;
    made.refusal = std::move(why);
    return made;
  }
};

}  // namespace quadriga
