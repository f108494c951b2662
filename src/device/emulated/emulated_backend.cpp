// SPDX-License-Identifier: BSD-3-Clause
// src/device/emulated/emulated_backend.cpp: accelerators on the host, by the real clock.
#include <quadriga/error.h>

#include "base/config.h"
#include "device/emulated/paced_links.h"
#include "device/emulated_memory.h"
#include "device/factory.h"
#include "device/kinds.h"
#include "device/stream_threads.h"

namespace quadriga {
namespace {

class EmulatedBackend final : public Backend {
 public:
  EmulatedBackend(Machine machine, const EmulatedOptions& options)
      : machine_(std::move(machine)),
        links_(machine_),
        threads_(machine_, options.cores > 0 ? options.cores : computing_cores(),
                 [this](const Copy& copy, const std::atomic<bool>& stopping) {
                   links_.copy(copy, stopping);
                 }) {
    for (const Device& device : machine_.devices) {
      memories_.emplace_back(device.space == host_space ? 0 : device.memory_bytes, true);
    }
  }

  std::byte* allocate(DeviceId device, std::size_t bytes) override {
    if (checked_device(machine_, device).space == host_space) return nullptr;
    return memories_[device].allocate(bytes);
  }
  void deallocate(DeviceId device, std::byte* memory) noexcept override {
    if (device < memories_.size()) memories_[device].deallocate(memory);
  }
  StreamId create_stream(DeviceId device, StreamKind kind) override {
    return threads_.create_stream(device, kind);
  }
  Event copy(StreamId stream, const Copy& copy) override {
    check_copy(machine_, copy, machine_.route(copy.from, copy.to));
    return threads_.enqueue(stream, copy);
  }
  Event launch(StreamId stream, const Launch& launch) override {
    check_launch(launch);
    return threads_.enqueue(stream, launch);
  }
  void wait(StreamId stream, Event event) override { threads_.wait(stream, event); }
  std::size_t next_completion(std::span<Completion> out, Nanoseconds deadline) override {
    return threads_.next_completion(out, deadline);
  }
  void wake() noexcept override { threads_.wake(); }
  bool tell(std::function<void()> ended) override { return threads_.tell(std::move(ended)); }
  Nanoseconds now() const noexcept override { return threads_.now(); }
  bool is_virtual() const noexcept override { return false; }
  DeviceId holder(const void* memory) const override { return holder_among(memories_, memory); }
  bool pin(std::byte*, std::size_t) override { return false; }
  void unpin(std::byte*, std::size_t) noexcept override {}
  const Machine& machine() const noexcept override { return machine_; }

 private:
  const Machine machine_;
  std::vector<EmulatedMemory> memories_;  // Of each device; the CPU's has a page that no one gets.
  PacedLinks links_;
  StreamThreads threads_;  // Last, so that its threads end before the rest goes.
};

}  // namespace

std::unique_ptr<Backend> make_emulated_backend(Machine machine, EmulatedOptions options) {
  for (const Device& device : machine.devices) {
    require(variants_of(device.kind) == DeviceKind::cpu,
            "the emulated backend drives devices that run variants for CPUs only");
  }
  return std::make_unique<EmulatedBackend>(std::move(machine), options);
}

}  // namespace quadriga
