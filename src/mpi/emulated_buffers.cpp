// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/emulated_buffers.cpp: emulated memory of devices: a port's, under addresses that nobody
// can read or write.
#include <quadriga/machine.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <shared_mutex>

#include "message/ports.h"
#include "mpi/device_buffers.h"

namespace quadriga::mpi {
namespace {

/// Addresses; pages are taken as they are written.
constexpr const char* machine = "emulated:1,memory=64GiB";

class EmulatedBuffers final : public DeviceBuffers {
 public:
  bool holds(const void* address) const noexcept override { return find(address) != nullptr; }
  message::MessageBuffer at(const void* address) const override {
    return {{}, find(address), port_, 0};
  }
  /// Where the host finds it; the address itself if it isn't emulated.
  std::byte* reachable(const void* address) const noexcept {
    std::byte* const found = find(address);
    return found != nullptr ? found : static_cast<std::byte*>(const_cast<void*>(address));
  }

  void* allocate(std::size_t bytes) try {
    const std::unique_lock lock(mutex_);
    if (!port_) port_ = message::ports::open(Machine::parse(machine));
    const std::size_t size = bytes > 0 ? bytes : 1;
    std::byte* const memory = port_->memory().allocate(0, size);
    void* const closed =
        mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (closed == MAP_FAILED) {
      port_->memory().deallocate(0, memory);
      return nullptr;
    }
    auto* const begin = static_cast<std::byte*>(closed);
    used_[begin] = {size, memory};
    if (least_ == nullptr || begin < least_) least_ = begin;
    if (begin + size > most_) most_ = begin + size;
    return closed;
  } catch (const std::exception&) {
    return nullptr;
  }
  bool free(void* memory) {
    const std::unique_lock lock(mutex_);
    const auto at = used_.find(static_cast<std::byte*>(memory));
    if (at == used_.end()) return false;
    munmap(at->first, at->second.bytes);
    port_->memory().deallocate(0, at->second.memory);
    used_.erase(at);
    return true;
  }

 private:
  struct Allocation {
    std::size_t bytes = 0;
    std::byte* memory = nullptr;  ///< The port's.
  };
  std::byte* find(const void* address) const noexcept {
    auto* const at = static_cast<std::byte*>(const_cast<void*>(address));
    // Most addresses are the host's, and lie outside of all allocations.
    if (at < least_.load(std::memory_order_acquire) || at >= most_.load(std::memory_order_acquire))
      return nullptr;
    const std::shared_lock lock(mutex_);
    auto next = used_.upper_bound(at);
    if (next == used_.begin()) return nullptr;
    const auto& [base, allocation] = *--next;
    return at < base + allocation.bytes ? allocation.memory + (at - base) : nullptr;
  }

  mutable std::shared_mutex mutex_;
  std::shared_ptr<message::DevicePort> port_;  ///< From the first allocation on.
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

void emulate_device_memory() noexcept { device_buffers.store(&emulated()); }

}  // namespace quadriga::mpi

using quadriga::mpi::device_buffers;
using quadriga::mpi::emulated;

void* quadriga_emulated_malloc(std::size_t bytes) {
  return device_buffers.load() == &emulated() ? emulated().allocate(bytes) : std::malloc(bytes);
}

void quadriga_emulated_free(void* memory) {
  if (!emulated().free(memory)) std::free(memory);
}

void quadriga_emulated_copy(void* to, const void* from, std::size_t bytes) {
  std::memmove(emulated().reachable(to), emulated().reachable(from), bytes);
}
