// SPDX-License-Identifier: BSD-3-Clause
// src/device/cpu/cpu_backend.cpp: the host's cores as a backend: kernels on the user's memory, no
// copies.
#include <quadriga/error.h>
#include <quadriga/machine.h>

#include "base/cgroup.h"
#include "device/factory.h"
#include "device/stream_threads.h"

namespace quadriga {
namespace {

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(Machine machine)
      : machine_(std::move(machine)), threads_(machine_, most_kernels(machine_), Copier{}) {}

  std::byte* allocate(DeviceId device, std::size_t) override {
    checked_device(machine_, device);
    return nullptr;
  }
  void deallocate(DeviceId, std::byte*) noexcept override {}
  StreamId create_stream(DeviceId device, StreamKind kind) override {
    return threads_.create_stream(device, kind);
  }
  Event copy(StreamId, const Copy& copy) override {
    check_copy(machine_, copy, nullptr);
    return {};
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
  bool pin(std::byte*, std::size_t) override { return false; }
  void unpin(std::byte*, std::size_t) noexcept override {}
  const Machine& machine() const noexcept override { return machine_; }

 private:
  using Copier = StreamThreads::Copier;

  // Whoever asks for "cpu:8" on 2 cores gets 8 at once.
  static int most_kernels(const Machine& machine) {
    int cores = 0;
    for (const Device& device : machine.devices) cores += device.compute_streams;
    return cores;
  }

  const Machine machine_;
  StreamThreads threads_;  // Last, so that its threads end before the rest goes.
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(Machine machine) {
  for (const Device& device : machine.devices) {
    require(device.kind == DeviceKind::cpu, "the cpu backend drives devices of kind cpu only");
  }
  machine.routes.clear();
  return std::make_unique<CpuBackend>(std::move(machine));
}

}  // namespace quadriga
