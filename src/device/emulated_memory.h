// SPDX-License-Identifier: BSD-3-Clause
// src/device/emulated_memory.h: the memory of an emulated device, a bounded range of
// addresses.
#pragma once

#include <quadriga/types.h>

#include <cstddef>
#include <map>
#include <vector>

namespace quadriga {

/// Addresses for one device's memory, in whole pages, handed out first fit.
///
/// The system gives a page when it is first touched. Freed memory goes back to the system and is
/// closed, so that who uses it later is caught at once. Not thread-safe.
class EmulatedMemory {
 public:
  /// Untouchable memory is for backends that don't compute: its addresses can't be read or written.
  /// Errors:  too_large if the system hasn't that many addresses.
  EmulatedMemory(std::size_t bytes, bool touchable);
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
  std::map<std::size_t, std::size_t> used_;
};

/// The device whose memory an address lies in; no_device: none.
DeviceId holder_among(const std::vector<EmulatedMemory>& memories, const void* address) noexcept;

/// Bytes of a page of memory.
std::size_t page_bytes() noexcept;

}  // namespace quadriga
