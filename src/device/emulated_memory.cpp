// SPDX-License-Identifier: BSD-3-Clause
// src/device/emulated_memory.cpp: a reserved range of pages with a first-fit map of gaps.
#include "device/emulated_memory.h"

#include <fmt/format.h>
#include <quadriga/error.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/units.h"

namespace quadriga {
namespace {

std::size_t whole_pages(std::size_t bytes) {
  const std::size_t page = page_bytes();
  return (std::max<std::size_t>(bytes, 1) + page - 1) / page * page;
}

}  // namespace

DeviceId holder_among(const std::vector<EmulatedMemory>& memories, const void* address) noexcept {
  for (std::size_t device = 0; device < memories.size(); ++device)
    if (memories[device].contains(address)) return static_cast<DeviceId>(device);
  return no_device;
}

std::size_t page_bytes() noexcept {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

EmulatedMemory::EmulatedMemory(std::size_t bytes, bool touchable)
    : capacity_(whole_pages(bytes)), touchable_(touchable) {
  void* range =
      ::mmap(nullptr, capacity_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) {
    fail(Errc::too_large, fmt::format("no {} of addresses for an emulated device's memory; is "
                                      "there a limit of the process (ulimit -v)?",
                                      format_bytes(static_cast<double>(bytes))));
  }
  base_ = static_cast<std::byte*>(range);
  free_[0] = capacity_;
}

EmulatedMemory::EmulatedMemory(EmulatedMemory&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      capacity_(std::exchange(other.capacity_, 0)),
      touchable_(other.touchable_),
      free_(std::move(other.free_)),
      used_(std::move(other.used_)) {}

EmulatedMemory::~EmulatedMemory() {
  if (base_ != nullptr) ::munmap(base_, capacity_);
}

std::byte* EmulatedMemory::allocate(std::size_t bytes) {
  if (bytes > capacity_) return nullptr;
  const std::size_t size = whole_pages(bytes);
  const auto gap =
      std::ranges::find_if(free_, [size](const auto& entry) { return entry.second >= size; });
  if (gap == free_.end()) return nullptr;
  const auto [offset, length] = *gap;
  if (touchable_ && ::mprotect(base_ + offset, size, PROT_READ | PROT_WRITE) != 0) return nullptr;
  free_.erase(gap);
  if (length > size) free_[offset + size] = length - size;
  used_[offset] = size;
  return base_ + offset;
}

void EmulatedMemory::deallocate(std::byte* memory) noexcept {
  if (memory == nullptr || !contains(memory)) return;
  const auto block = used_.find(static_cast<std::size_t>(memory - base_));
  if (block == used_.end()) return;
  auto [offset, size] = *block;
  used_.erase(block);
  if (touchable_) {
    ::madvise(base_ + offset, size, MADV_DONTNEED);
    ::mprotect(base_ + offset, size, PROT_NONE);
  }
  const auto after = free_.find(offset + size);
  if (after != free_.end()) {
    size += after->second;
    free_.erase(after);
  }
  const auto next = free_.lower_bound(offset);
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += size;
      return;
    }
  }
  free_[offset] = size;
}

void EmulatedMemory::close() noexcept { ::mprotect(base_, capacity_, PROT_NONE); }

void EmulatedMemory::open() noexcept {
  for (const auto& [offset, size] : used_) {
    ::mprotect(base_ + offset, size, PROT_READ | PROT_WRITE);
  }
}

void EmulatedMemory::open(std::byte* memory, std::size_t bytes) noexcept {
  if (bytes == 0) return;
  const auto begin = static_cast<std::size_t>(memory - base_) / page_bytes() * page_bytes();
  const std::size_t end =
      std::min(whole_pages(static_cast<std::size_t>(memory - base_) + bytes), capacity_);
  ::mprotect(base_ + begin, end - begin, PROT_READ | PROT_WRITE);
}

}  // namespace quadriga
