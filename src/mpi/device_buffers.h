// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/device_buffers.h: which pointers of an MPI program lead to memory of devices, and how the
// library reaches that.
//
// What knows a kind of device memory registers one DeviceBuffers; without any, all is the host's.
// The emulated kind stands for a GPU where there is none: its addresses can't be read or written by
// the host, as MPI would; the library does so elsewhere.
#pragma once

#include <atomic>
#include <cstddef>

namespace quadriga::mpi {

class DeviceBuffers {
 public:
  virtual ~DeviceBuffers() = default;
  /// Whether an address lies in memory of this kind. Cheap: asked of each buffer of each call.
  virtual bool holds(const void* address) const noexcept = 0;
  /// Where the library's kernels and transports reach these bytes. Addresses keep their distances
  /// within an allocation.
  virtual std::byte* reachable(const void* address) const noexcept = 0;
};

/// Null if no memory is a device's.
extern std::atomic<const DeviceBuffers*> device_buffers;

inline bool on_device(const void* address) noexcept {
  const DeviceBuffers* const known = device_buffers.load(std::memory_order_acquire);
  return known != nullptr && known->holds(address);
}
/// The same address for the host's memory.
inline std::byte* reachable(const void* address) noexcept {
  const DeviceBuffers* const known = device_buffers.load(std::memory_order_acquire);
  if (known != nullptr && known->holds(address)) return known->reachable(address);
  return static_cast<std::byte*>(const_cast<void*>(address));
}

/// From now on quadriga_emulated_malloc() gives memory that the host can't touch; until then, and
/// without the library, programs get the host's.
void emulate_device_memory() noexcept;

}  // namespace quadriga::mpi

extern "C" {
/// Memory like a device's for programs that are tried without one. Null if there is none.
__attribute__((visibility("default"))) void* quadriga_emulated_malloc(std::size_t bytes);
__attribute__((visibility("default"))) void quadriga_emulated_free(void* memory);
/// Copies as cudaMemcpy does: each side on the host or in emulated memory.
__attribute__((visibility("default"))) void quadriga_emulated_copy(void* to, const void* from,
                                                                   std::size_t bytes);
}
