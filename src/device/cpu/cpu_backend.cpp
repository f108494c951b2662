// SPDX-License-Identifier: BSD-3-Clause
// src/device/cpu/cpu_backend.cpp: the host's cores as a backend: kernels on the user's memory, no
// copies.
#include <quadriga/error.h>
#include <quadriga/machine.h>

#include "device/factory.h"
#include "device/threaded_backend.h"

namespace quadriga {
namespace {

/// The user's: there is nothing to allocate, and no route to copy by.
class HostMemory final : public ThreadedMemory {
 public:
  std::byte* allocate(DeviceId, std::size_t) override { return nullptr; }
  void deallocate(DeviceId, std::byte*) noexcept override {}
  void copy(const Copy&, const std::atomic<bool>&) override {}
};

// Whoever asks for "cpu:8" on 2 cores gets 8 at once.
int most_kernels(const Machine& machine) {
  int cores = 0;
  for (const Device& device : machine.devices) cores += device.compute_streams;
  return cores;
}

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(Machine machine) {
  for (const Device& device : machine.devices) {
    require(device.kind == DeviceKind::cpu, "the cpu backend drives devices of kind cpu only");
  }
  machine.routes.clear();
  const int cores = most_kernels(machine);
  return std::make_unique<ThreadedBackend>(std::move(machine), cores,
                                           std::make_unique<HostMemory>());
}

}  // namespace quadriga
