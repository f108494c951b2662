// SPDX-License-Identifier: BSD-3-Clause
// src/device/emulated_memory.cpp: a reserved range of pages with a first-fit map of gaps.
#include "device/emulated_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <quadriga/error.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

#include "base/units.h"

namespace quadriga {
namespace {

std::size_t whole_pages(std::size_t bytes) {
  const std::size_t page = page_bytes();
  return (std::max<std::size_t>(bytes, 1) + page - 1) / page * page;
}

std::atomic<std::uint64_t> allocations{0};  // Of all devices of this process.

// Of a size that nobody can change: no access to a mapping of it can fault.
int sealed_file(std::size_t bytes) {
  const int file = ::memfd_create("quadriga-device", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  const bool made = file >= 0 && ::ftruncate(file, static_cast<off_t>(bytes)) == 0 &&
                    ::fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
  if (made) return file;
  const std::string why = std::strerror(errno);
  if (file >= 0) ::close(file);
  fail(Errc::unavailable, "no memory file for an emulated device's memory: " + why);
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

EmulatedMemory::EmulatedMemory(std::size_t bytes, Use use)
    : capacity_(whole_pages(bytes)),
      touchable_(use != Use::addresses_only),
      file_(use == Use::shared ? sealed_file(capacity_) : -1) {
  const int flags = file_ < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
  void* range = ::mmap(nullptr, capacity_, PROT_NONE, flags, file_, 0);
  if (range == MAP_FAILED) {
    if (file_ >= 0) ::close(file_);
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
      used_(std::move(other.used_)),
      file_(std::exchange(other.file_, -1)) {}

EmulatedMemory::~EmulatedMemory() {
  if (base_ != nullptr) ::munmap(base_, capacity_);
  if (file_ >= 0) ::close(file_);
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
  used_[offset] = {size, ++allocations};
  return base_ + offset;
}

void EmulatedMemory::deallocate(std::byte* memory) noexcept {
  if (memory == nullptr || !contains(memory)) return;
  const auto block = used_.find(static_cast<std::size_t>(memory - base_));
  if (block == used_.end()) return;
  std::size_t offset = block->first;
  std::size_t size = block->second.bytes;
  used_.erase(block);
  if (touchable_) {
    if (file_ < 0)
      ::madvise(base_ + offset, size, MADV_DONTNEED);
    else
      ::fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                  static_cast<off_t>(size));
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

MemoryExport EmulatedMemory::share(const void* address) const {
  MemoryExport made;
  if (!contains(address)) return MemoryExport::refused("it isn't this device's memory");
  const auto at = static_cast<std::size_t>(static_cast<const std::byte*>(address) - base_);
  const auto next = used_.upper_bound(at);
  if (next == used_.begin()) return MemoryExport::refused("nothing is allocated there");
  const auto& [offset, block] = *std::prev(next);
  if (at >= offset + block.bytes) return MemoryExport::refused("nothing is allocated there");
  made.handle.id = block.id;
  made.handle.bytes = block.bytes;
  made.handle.offset = offset;
  made.handle.descriptor = file_;
  made.offset = at - offset;
  if (file_ < 0)
    made.refusal = "the emulated device wasn't made to share its memory";
  else
    made.handle.kind = HandleKind::memory_file;
  return made;
}

std::byte* map_shared(const MemoryHandle& handle, int descriptor) {
  if (handle.kind != HandleKind::memory_file)
    fail(Errc::unavailable, "the address is not in the memory of an emulated device");
  struct stat about {};
  const int seals = ::fcntl(descriptor, F_GET_SEALS);
  const bool is_sealed = seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
  if (!is_sealed || ::fstat(descriptor, &about) != 0)
    fail(Errc::invalid_argument, "the other process's file is no sealed memory file");
  const auto size = static_cast<std::uint64_t>(about.st_size);
  const bool fits = handle.bytes > 0 && handle.offset % page_bytes() == 0 &&
                    handle.offset <= size && handle.bytes <= size - handle.offset;
  if (!fits)
    fail(Errc::invalid_argument,
         fmt::format("the other process's file has {} bytes, none from {} to {} bytes on", size,
                     handle.offset, handle.bytes));
  void* const mapped = ::mmap(nullptr, handle.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor,
                              static_cast<off_t>(handle.offset));
  if (mapped == MAP_FAILED) fail(Errc::unavailable, fmt::format("mmap: {}", std::strerror(errno)));
  return static_cast<std::byte*>(mapped);
}

void unmap_shared(std::byte* mapped, std::size_t bytes) noexcept { ::munmap(mapped, bytes); }

void EmulatedMemory::close() noexcept { ::mprotect(base_, capacity_, PROT_NONE); }

void EmulatedMemory::open() noexcept {
  for (const auto& [offset, block] : used_) {
    ::mprotect(base_ + offset, block.bytes, PROT_READ | PROT_WRITE);
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
