// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/kernel_times.h: what kernels take on each device by the machine's table, remembered.
#pragma once

#include <quadriga/codelet.h>
#include <quadriga/machine.h>

#include <string>
#include <unordered_map>
#include <vector>

namespace quadriga {

struct KernelTime {
  bool known = false;  ///< The table has the kernel for this device.
  double seconds = 0;
  /// A kernel twice as large would hardly run at a higher rate: none gains beside this one.
  bool fills = false;
};

/// Graphs have many tasks and few kinds of them: a name is looked up in the table once a kind.
class KernelTimes {
 public:
  explicit KernelTimes(const Machine& machine)
      : machine_(machine), found_(machine.devices.size()) {}

  const KernelTime& of(const Cost& cost, DeviceId device);

 private:
  struct Kind {
    std::string kernel;
    double order = 0;
    double volume = 0;
    KernelTime time;
    bool is(const Cost& cost) const noexcept {
      return order == cost.order && volume == cost.volume && kernel == cost.kernel;
    }
  };
  /// Of one device.
  struct Kinds {
    std::unordered_multimap<std::size_t, Kind> by_hash;
    const Kind* latest = nullptr;  ///< Asked for last: most tasks are like those before them.
  };
  const Kind& find(const Cost& cost, DeviceId device);
  KernelTime look_up(const Cost& cost, const Device& device) const;

  const Machine& machine_;
  std::vector<Kinds> found_;  ///< By device.
};

}  // namespace quadriga
