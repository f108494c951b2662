// SPDX-License-Identifier: BSD-3-Clause
// src/device/emulated/emulated_backend.cpp: accelerators on the host, by the real clock.
#include <quadriga/error.h>

#include <map>
#include <mutex>

#include "base/config.h"
#include "device/emulated/paced_links.h"
#include "device/emulated_memory.h"
#include "device/factory.h"
#include "device/kinds.h"
#include "device/threaded_backend.h"

namespace quadriga {
namespace {

class MemoryBehindLinks final : public ThreadedMemory {
 public:
  MemoryBehindLinks(Machine machine, bool shares) : machine_(std::move(machine)), links_(machine_) {
    const auto use = shares ? EmulatedMemory::Use::shared : EmulatedMemory::Use::touched;
    for (const Device& device : machine_.devices)
      memories_.emplace_back(device.space == host_space ? 0 : device.memory_bytes, use);
  }
  ~MemoryBehindLinks() override {
    for (const auto& [mapped, bytes] : imported_) unmap_shared(mapped, bytes);
  }

  std::byte* allocate(DeviceId device, std::size_t bytes) override {
    return machine_.devices[device].space == host_space ? nullptr
                                                        : memories_[device].allocate(bytes);
  }
  void deallocate(DeviceId device, std::byte* memory) noexcept override {
    memories_[device].deallocate(memory);
  }
  DeviceId holder(const void* memory) const override { return holder_among(memories_, memory); }
  MemoryExport export_memory(DeviceId device, const void* memory) const override {
    return memories_[device].share(memory);
  }
  std::byte* import_memory(DeviceId, const MemoryHandle& handle, int file) override {
    std::byte* const mapped = map_shared(handle, file);
    const std::lock_guard lock(mutex_);
    imported_[mapped] = handle.bytes;
    return mapped;
  }
  void close_memory(std::byte* mapped) noexcept override {
    const std::lock_guard lock(mutex_);
    const auto found = imported_.find(mapped);
    if (found == imported_.end()) return;
    unmap_shared(mapped, found->second);
    imported_.erase(found);
  }
  void copy(const Copy& copy, const std::atomic<bool>& stopping) override {
    links_.copy(copy, stopping);
  }

 private:
  const Machine machine_;
  std::vector<EmulatedMemory> memories_;  // Of each device; the CPU's has a page that no one gets.
  PacedLinks links_;
  std::mutex mutex_;                              // Guards imported_.
  std::map<std::byte*, std::size_t> imported_{};  // Bytes, by address.
};

}  // namespace

std::unique_ptr<Backend> make_emulated_backend(Machine machine, EmulatedOptions options) {
  for (const Device& device : machine.devices) {
    require(variants_of(device.kind) == DeviceKind::cpu,
            "the emulated backend drives devices that run variants for CPUs only");
  }
  auto memory = std::make_unique<MemoryBehindLinks>(machine, options.shares_memory);
  return std::make_unique<ThreadedBackend>(
      std::move(machine), options.cores > 0 ? options.cores : computing_cores(), std::move(memory));
}

}  // namespace quadriga
