// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/losses.h: which devices are lost, and why.
//
// Invariants
//   1. A device works, is being lost, then is lost; it never goes back. From the second state on
//      nothing is queued on it; in the third no host thread touches memory that its operations
//      copy.
//   2. `mutex_` guards the reasons. A device's reason is set before its state changes.
#pragma once

#include <quadriga/types.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>

namespace quadriga::cuda {

/// Any thread may ask. Who loses devices does it one by one.
class Losses {
 public:
  explicit Losses(std::size_t devices) : devices_(devices) {}

  /// Nothing may be queued on the device any more.
  bool is_losing(DeviceId device) const noexcept { return state(device) != State::works; }
  /// Its operations may end with the loss.
  bool is_lost(DeviceId device) const noexcept { return state(device) == State::lost; }
  /// Whether a device is, or is being, lost.
  bool any() const noexcept { return any_.load(); }
  /// Why operations that touch these devices end; null: both work. The first one's counts.
  std::exception_ptr of(DeviceId device, DeviceId partner) const {
    if (!any()) return nullptr;
    const std::lock_guard lock(mutex_);
    const bool of_first = devices_[device].why || partner == no_device;
    return devices_[of_first ? device : partner].why;
  }

  void begin(DeviceId device, std::exception_ptr why) {
    {
      const std::lock_guard lock(mutex_);
      devices_[device].why = std::move(why);
    }
    any_.store(true);
    devices_[device].state.store(State::losing);
  }
  void end(DeviceId device) noexcept { devices_[device].state.store(State::lost); }

 private:
  enum class State : std::uint8_t { works, losing, lost };
  struct Device {
    std::atomic<State> state{State::works};
    std::exception_ptr why;
  };
  State state(DeviceId device) const noexcept { return devices_[device].state.load(); }

  mutable std::mutex mutex_;
  std::atomic<bool> any_{false};
  std::deque<Device> devices_;
};

}  // namespace quadriga::cuda
