// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/message_devices.h: memory of devices for messages: GPUs', or emulated ones'.
#pragma once

#include <quadriga/message_buffer.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace quadriga::message {

class DevicePort;

/// Devices of this process whose memory messages are sent from and received into. Copies are the
/// same devices.
class Devices {
 public:
  /// "cuda:0", one CUDA device, or emulated ones as of an engine: "emulated:2,memory=64MiB".
  /// Errors: invalid_argument for another text; unavailable without that device; device_lost.
  explicit Devices(const std::string& devices);
  /// How many they are.
  int count() const noexcept;

  /// Memory of a device; of CUDA's, what cudaMalloc() and other libraries give serves as well.
  /// Errors: too_large if it has no more; invalid_argument if there is no such device.
  void* allocate(int device, std::size_t bytes) const;
  /// Once no message uses it; waits for what is queued.
  void deallocate(int device, void* memory) const noexcept;
  /// Copies from and to the host's memory; returns once done.
  void write(int device, void* memory, const void* from, std::size_t bytes) const;
  void read(int device, const void* memory, void* into, std::size_t bytes) const;

  /// What a layout says of a device's memory, as an argument of a communicator's calls.
  ///
  /// `stream`, a cudaStream_t as a number: what it holds when the call is made comes first, without
  /// a wait of the host. recv(), and wait() of irecv(), return once the message is on its way; what
  /// the stream gets later comes after it. Collectives wait for it on the host, no longer than they
  /// may; a plan's start comes after what it holds then. Without one the memory must be ready.
  /// Errors: invalid_argument if there is no such device.
  SendBuffer sent(const void* data, Layout layout, int device = 0,
                  std::optional<std::uintptr_t> stream = {}) const;
  ReceiveBuffer received(void* data, Layout layout, int device = 0,
                         std::optional<std::uintptr_t> stream = {}) const;

  /// A stream of an emulated device, to be given as `stream`; a GPU's are the program's own.
  std::uintptr_t open_stream(int device) const;

 private:
  DeviceMemory memory(int device, std::optional<std::uintptr_t> stream) const;
  std::shared_ptr<DevicePort> port_;
};

}  // namespace quadriga::message
