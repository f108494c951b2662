// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/cuda_check.h: turns errors of the CUDA runtime into Quadriga's.
#pragma once

#include <cuda_runtime_api.h>
#include <quadriga/error.h>

#include <source_location>
#include <string_view>

namespace quadriga::cuda {

/// Throws unless the call succeeded; `call` says what was tried.
///
/// Errors:  device_lost after a fault that ends the device's work in this process; unavailable
///          without a device or with a driver that is too old; task_failed otherwise.
void check(cudaError_t error, std::string_view call,
           std::source_location where = std::source_location::current());

/// The exception that check() would throw.
Error error_of(cudaError_t error, std::string_view call,
               std::source_location where = std::source_location::current());

/// Whether the device does nothing any more in this process after the error ("sticky").
bool is_fatal(cudaError_t error) noexcept;

/// What `begin` returns, for an engine's beginning. Devices can be counted after a fault, but do
/// nothing more: what it throws of a lost device then means that none can be had.
template <class Begin>
auto begin_or_refuse(Begin&& begin) {
  try {
    return begin();
  } catch (const Error& error) {
    if (error.code() != Errc::device_lost) throw;
    fail(Errc::unavailable, error.what());
  }
}

/// Sets the device for the calls of this thread, and the one before it again at the end.
class DeviceGuard {
 public:
  explicit DeviceGuard(int ordinal);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int before_ = 0;
};

/// The same, but a thread of the library's own keeps the device: whatever it calls next sets its.
class CallDevice {
 public:
  explicit CallDevice(int ordinal);
  ~CallDevice();
  CallDevice(const CallDevice&) = delete;
  CallDevice& operator=(const CallDevice&) = delete;

 private:
  int before_ = -1;  ///< To be set again; -1: nothing is.
};

/// Sets the current device again that the calling thread had before, whatever was set meanwhile.
class KeptDevice {
 public:
  KeptDevice() noexcept;
  ~KeptDevice();
  KeptDevice(const KeptDevice&) = delete;
  KeptDevice& operator=(const KeptDevice&) = delete;

 private:
  int before_ = -1;
};

}  // namespace quadriga::cuda
