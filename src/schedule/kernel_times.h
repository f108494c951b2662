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
  };
  KernelTime look_up(const Cost& cost, const Device& device) const;

  const Machine& machine_;
  std::vector<std::unordered_multimap<std::size_t, Kind>> found_;  ///< By device, then by hash.
};

}  // namespace quadriga
