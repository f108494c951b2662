// SPDX-License-Identifier: BSD-3-Clause
// src/device/emulated_memory.h: the memory of an emulated device, a bounded range of
// addresses.
#pragma once

#include <quadriga/types.h>

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "device/memory_handle.h"

namespace quadriga {

/// Addresses for one device's memory, in whole pages, handed out first fit.
///
/// The system gives a page when it is first touched. Freed memory goes back to the system and is
/// closed, so that who uses it later is caught at once. Not thread-safe.
class EmulatedMemory {
 public:
  enum class Use : std::uint8_t { addresses_only, touched, shared };
  /// Untouchable memory is for backends that don't compute: its addresses can't be read or written.
  /// Shared memory lies in a memory file, sealed against shrinking, which others may map.
  /// Errors:  too_large if the system hasn't that many addresses; unavailable if it makes no file.
  EmulatedMemory(std::size_t bytes, bool touchable)
      : EmulatedMemory(bytes, touchable ? Use::touched : Use::addresses_only) {}
  EmulatedMemory(std::size_t bytes, Use use);
  ~EmulatedMemory();
  EmulatedMemory(EmulatedMemory&& other) noexcept;
  EmulatedMemory(const EmulatedMemory&) = delete;
  EmulatedMemory& operator=(const EmulatedMemory&) = delete;
  EmulatedMemory& operator=(EmulatedMemory&&) = delete;

  /// Null if no gap is large enough.
  std::byte* allocate(std::size_t bytes);
  /// Ignores null and addresses that allocate() didn't return.
  void deallocate(std::byte* memory) noexcept;

  bool contains(const void* address) const noexcept {
    return address >= base_ && address < base_ + capacity_;
  }
  const std::byte* base() const noexcept { return base_; }
  /// The allocation that an address lies in, as another process maps it; its kind is `none` if the
  /// memory isn't shared, its id 0 if nothing is allocated there.
  MemoryExport share(const void* address) const;
  /// Closes all memory to reads and writes, or opens what is allocated.
  void close() noexcept;
  void open() noexcept;
  /// Opens the pages that hold these bytes.
  void open(std::byte* memory, std::size_t bytes) noexcept;

 private:
  std::byte* base_ = nullptr;
  std::size_t capacity_ = 0;  // Whole pages.
  bool touchable_;
  std::map<std::size_t, std::size_t> free_;  // Size by offset, no two adjacent.
  struct Block {
    std::size_t bytes = 0;
    std::uint64_t id = 0;
  };
  std::map<std::size_t, Block> used_;  // By offset.
  int file_ = -1;
};

/// The device whose memory an address lies in; no_device: none.
DeviceId holder_among(const std::vector<EmulatedMemory>& memories, const void* address) noexcept;

/// Maps an allocation of another process's file. The descriptor stays the caller's.
/// Errors:  invalid_argument if the file isn't sealed or is shorter than the handle says;
///          unavailable if the system maps it not.
std::byte* map_shared(const MemoryHandle& handle, int descriptor);
void unmap_shared(std::byte* mapped, std::size_t bytes) noexcept;

/// Bytes of a page of memory.
std::size_t page_bytes() noexcept;

}  // namespace quadriga
