// SPDX-License-Identifier: BSD-3-Clause
// src/device/threaded_backend.h: a backend whose streams are host threads; kinds of devices differ
// only in their memory.
#pragma once

#include <quadriga/error.h>
#include <quadriga/machine.h>

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "device/backend.h"
#include "device/operation.h"
#include "device/stream_threads.h"

namespace quadriga {

/// The memory of the devices of a ThreadedBackend.
class ThreadedMemory {
 public:
  virtual ~ThreadedMemory() = default;
  /// As Backend's; the device is one of the machine's.
  virtual std::byte* allocate(DeviceId device, std::size_t bytes) = 0;
  virtual void deallocate(DeviceId device, std::byte* memory) noexcept = 0;
  virtual DeviceId holder(const void* /*memory*/) const { return no_device; }
  virtual MemoryExport export_memory(DeviceId, const void*) const {
    return MemoryExport::refused("this kind of device shares no memory");
  }
  virtual std::byte* import_memory(DeviceId, const MemoryHandle&, int) {
    fail(Errc::unavailable, "this kind of device opens no memory of other processes");
  }
  virtual void close_memory(std::byte*) noexcept {}
  /// On the thread of a stream; returns early once `stopping` is set.
  virtual void copy(const Copy& copy, const std::atomic<bool>& stopping) = 0;
  /// Errors: invalid_argument if nothing can run on the devices.
  virtual void check(const Launch& launch) const { check_launch(launch); }
};

class ThreadedBackend final : public Backend {
 public:
  /// At most `cores` kernels run at once.
  ThreadedBackend(Machine machine, int cores, std::unique_ptr<ThreadedMemory> memory)
      : machine_(std::move(machine)),
        memory_(std::move(memory)),
        threads_(machine_, cores, [this](const Copy& copy, const std::atomic<bool>& stopping) {
          memory_->copy(copy, stopping);
        }) {}

  std::byte* allocate(DeviceId device, std::size_t bytes) override {
    checked_device(machine_, device);
    return memory_->allocate(device, bytes);
  }
  void deallocate(DeviceId device, std::byte* memory) noexcept override {
    if (device < machine_.devices.size()) memory_->deallocate(device, memory);
  }
  MemoryExport export_memory(DeviceId device, const void* memory) const override {
    checked_device(machine_, device);
    return memory_->export_memory(device, memory);
  }
  std::uint64_t allocation_at(DeviceId device, const void* memory) const override {
    return export_memory(device, memory).handle.id;
  }
  std::byte* import_memory(DeviceId device, const MemoryHandle& handle, int file) override {
    checked_device(machine_, device);
    return memory_->import_memory(device, handle, file);
  }
  void close_memory(DeviceId, std::byte* mapped) noexcept override {
    memory_->close_memory(mapped);
  }
  StreamId create_stream(DeviceId device, StreamKind kind) override {
    return threads_.create_stream(device, kind);
  }
  Event copy(StreamId stream, const Copy& copy) override {
    check_copy(machine_, copy, machine_.route(copy.from, copy.to));
    return threads_.enqueue(stream, copy);
  }
  Event launch(StreamId stream, const Launch& launch) override {
    memory_->check(launch);
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
  DeviceId holder(const void* memory) const override { return memory_->holder(memory); }
  bool pin(std::byte*, std::size_t) override { return false; }
  void unpin(std::byte*, std::size_t) noexcept override {}
  const Machine& machine() const noexcept override { return machine_; }

 private:
  const Machine machine_;
  const std::unique_ptr<ThreadedMemory> memory_;
  StreamThreads threads_;  // Last, so that its threads end before the rest goes.
};

}  // namespace quadriga
