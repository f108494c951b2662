// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/shared_memory.h: memory of CUDA devices that other processes open, and theirs.
//
// Invariants
//   1. `mutex_` guards what was shared and what was opened; the runtime may be called meanwhile, as
//      none of these calls waits for what is queued.
//   2. A handle that is kept counts only as long as its address lies in the allocation with the
//      same buffer ID: the runtime gives addresses again, buffer IDs never.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "device/memory_handle.h"

namespace quadriga::cuda {

class SharedMemory {
 public:
  SharedMemory() = default;
  /// Closes what is open. Nothing that is queued uses it.
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  /// The handle of the allocation that an address of a device lies in: made once for each.
  MemoryExport share(int ordinal, const void* memory);
  /// Its buffer ID; 0 if nothing is allocated there.
  static std::uint64_t buffer_id(int ordinal, const void* memory);

  /// Errors: unavailable, with the driver's reason; invalid_argument if the memory is smaller than
  ///         the handle says.
  std::byte* open(int ordinal, const MemoryHandle& handle, int descriptor);
  /// What isn't open is left alone.
  void close(int ordinal, std::byte* mapped) noexcept;

 private:
  struct Opened {
    HandleKind kind = HandleKind::none;
    std::size_t bytes = 0;
    int ordinal = 0;
    int count = 0;
  };
  MemoryHandle shared(int ordinal, const std::byte* base, std::size_t bytes, std::uint64_t id);
  void close_one(std::byte* mapped, const Opened& opened) noexcept;

  std::mutex mutex_;
  std::map<const std::byte*, MemoryHandle> shared_;  // By where the allocation begins.
  std::map<std::byte*, Opened> opened_;
};

}  // namespace quadriga::cuda
