// SPDX-License-Identifier: BSD-3-Clause
// src/device/emulated/emulated_backend.cpp: accelerators on the host, by the real clock.
#include <quadriga/error.h>

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
  explicit MemoryBehindLinks(Machine machine) : machine_(std::move(machine)), links_(machine_) {
    for (const Device& device : machine_.devices)
      memories_.emplace_back(device.space == host_space ? 0 : device.memory_bytes, true);
  }

  std::byte* allocate(DeviceId device, std::size_t bytes) override {
    return machine_.devices[device].space == host_space ? nullptr
                                                        : memories_[device].allocate(bytes);
  }
  void deallocate(DeviceId device, std::byte* memory) noexcept override {
    memories_[device].deallocate(memory);
  }
  DeviceId holder(const void* memory) const override { return holder_among(memories_, memory); }
  void copy(const Copy& copy, const std::atomic<bool>& stopping) override {
    links_.copy(copy, stopping);
  }

 private:
  const Machine machine_;
  std::vector<EmulatedMemory> memories_;  // Of each device; the CPU's has a page that no one gets.
  PacedLinks links_;
};

}  // namespace

std::unique_ptr<Backend> make_emulated_backend(Machine machine, EmulatedOptions options) {
  for (const Device& device : machine.devices) {
    require(variants_of(device.kind) == DeviceKind::cpu,
            "the emulated backend drives devices that run variants for CPUs only");
  }
  auto memory = std::make_unique<MemoryBehindLinks>(machine);
  return std::make_unique<ThreadedBackend>(
      std::move(machine), options.cores > 0 ? options.cores : computing_cores(), std::move(memory));
}

}  // namespace quadriga
