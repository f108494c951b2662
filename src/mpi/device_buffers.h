// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/device_buffers.h: which pointers of an MPI program lead to memory of devices, and how the
// library reaches that.
//
// What knows a kind of device memory registers one DeviceBuffers; without any, all is the host's.
// The emulated kind stands for a GPU where there is none: its addresses can't be read or written by
// the host, as MPI would; the library reaches the bytes elsewhere, by a port as it does a GPU's.
#pragma once

#include <atomic>
#include <cstddef>

#include "message/transfer.h"

namespace quadriga::mpi {

class DeviceBuffers {
 public:
  virtual ~DeviceBuffers() = default;
  /// Whether an address lies in memory of this kind. Cheap: asked of each buffer of each call.
  virtual bool holds(const void* address) const noexcept = 0;
  /// The buffer with the port and device of an address that it holds, and where the port finds what
  /// lies there; the layout is empty. Addresses keep their distances within an allocation.
  /// Errors: those of DevicePort.
  virtual message::MessageBuffer at(const void* address) const = 0;
};

/// Null if no memory is a device's.
extern std::atomic<const DeviceBuffers*> device_buffers;

inline bool on_device(const void* address) noexcept {
  const DeviceBuffers* const known = device_buffers.load(std::memory_order_acquire);
  return known != nullptr && known->holds(address);
}

/// Elements whose layout's offsets count from an address; whose memory it is, the first byte tells.
/// Errors: those of DevicePort.
message::MessageBuffer buffer_at(const void* address, const message::Layout& layout);
/// The same for bytes side by side.
message::MessageBuffer bytes_at(const void* address, std::int64_t bytes);
/// Copies the elements of `from` to the first of `into`, wherever both lie, and waits for it.
/// Errors: those of messages; invalid_argument if there are too many.
void move(const message::MessageBuffer& from, const message::MessageBuffer& into);

/// From now on quadriga_emulated_malloc() gives memory that the host can't touch; until then, and
/// without the library, programs get the host's.
void emulate_device_memory() noexcept;
/// From now on memory of the CUDA devices of this process is known, however it was allocated. False
/// if there are none, or this build can't reach them.
bool find_cuda_memory() noexcept;

}  // namespace quadriga::mpi

extern "C" {
/// Memory like a device's for programs that are tried without one. Null if there is none.
__attribute__((visibility("default"))) void* quadriga_emulated_malloc(std::size_t bytes);
__attribute__((visibility("default"))) void quadriga_emulated_free(void* memory);
/// Copies as cudaMemcpy does: each side on the host or in emulated memory.
__attribute__((visibility("default"))) void quadriga_emulated_copy(void* to, const void* from,
                                                                   std::size_t bytes);
}
