// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/device_buffers.cpp: emulated memory of devices: mapped twice, once closed.
#include "mpi/device_buffers.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <shared_mutex>

namespace quadriga::mpi {
namespace {

class EmulatedBuffers final : public DeviceBuffers {
 public:
  bool holds(const void* address) const noexcept override {
    return find(address).second != nullptr;
  }
  std::byte* reachable(const void* address) const noexcept override { return find(address).second; }

  void* allocate(std::size_t bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t size = (bytes + page) / page * page;
    const int file = memfd_create("quadriga-emulated-device", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, static_cast<off_t>(size)) != 0) return nullptr;
    void* const closed = mmap(nullptr, size, PROT_NONE, MAP_SHARED, file, 0);
    void* const open = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (closed == MAP_FAILED || open == MAP_FAILED) return nullptr;
    const std::unique_lock lock(mutex_);
    auto* const begin = static_cast<std::byte*>(closed);
    used_[begin] = {size, static_cast<std::byte*>(open)};
    if (least_ == nullptr || begin < least_) least_ = begin;
    if (begin + size > most_) most_ = begin + size;
    return closed;
  }
  bool free(void* memory) {
    const std::unique_lock lock(mutex_);
    const auto at = used_.find(static_cast<std::byte*>(memory));
    if (at == used_.end()) return false;
    munmap(at->first, at->second.bytes);
    munmap(at->second.open, at->second.bytes);
    used_.erase(at);
    return true;
  }

 private:
  struct Allocation {
    std::size_t bytes = 0;
    std::byte* open = nullptr;
  };
  // Whether it was found, and where the host reaches it.
  std::pair<bool, std::byte*> find(const void* address) const noexcept {
    auto* const at = static_cast<std::byte*>(const_cast<void*>(address));
    // Most addresses are the host's, and lie outside of all allocations.
    if (at < least_.load(std::memory_order_acquire) || at >= most_.load(std::memory_order_acquire))
      return {};
    const std::shared_lock lock(mutex_);
    auto next = used_.upper_bound(at);
    if (next == used_.begin()) return {};
    const auto& [base, allocation] = *--next;
    if (at >= base + allocation.bytes) return {};
    return {true, allocation.open + (at - base)};
  }
  mutable std::shared_mutex mutex_;
  std::map<std::byte*, Allocation> used_;
  // Around all that was ever allocated; written with the lock.
  std::atomic<std::byte*> least_{nullptr};
  std::atomic<std::byte*> most_{nullptr};
};

EmulatedBuffers& emulated() {
  static auto* const made = new EmulatedBuffers;  // Programs free memory after main().
  return *made;
}

}  // namespace

std::atomic<const DeviceBuffers*> device_buffers{nullptr};

void emulate_device_memory() noexcept { device_buffers.store(&emulated()); }

}  // namespace quadriga::mpi

using quadriga::mpi::device_buffers;
using quadriga::mpi::emulated;
using quadriga::mpi::reachable;

void* quadriga_emulated_malloc(std::size_t bytes) {
  return device_buffers.load() == &emulated() ? emulated().allocate(bytes) : std::malloc(bytes);
}

void quadriga_emulated_free(void* memory) {
  if (!emulated().free(memory)) std::free(memory);
}

void quadriga_emulated_copy(void* to, const void* from, std::size_t bytes) {
  std::memmove(reachable(to), reachable(from), bytes);
}
