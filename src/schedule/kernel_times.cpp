// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/kernel_times.cpp: kinds of kernels by name, order and volume.
#include "schedule/kernel_times.h"

#include <functional>

namespace quadriga {

const KernelTime& KernelTimes::of(const Cost& cost, DeviceId device) {
  static const KernelTime unknown;
  if (cost.kernel.empty()) return unknown;
  const Kind*& latest = found_[device].latest;
  if (!latest || !latest->is(cost)) latest = &find(cost, device);
  return latest->time;
}

const KernelTimes::Kind& KernelTimes::find(const Cost& cost, DeviceId device) {
  // Programs of more kinds than that are rare; theirs are found anew now and then.
  constexpr std::size_t most = 4096;
  auto& found = found_[device].by_hash;
  const std::size_t hash = std::hash<std::string_view>()(cost.kernel) ^
                           std::hash<double>()(cost.order) ^
                           (std::hash<double>()(cost.volume) << 1);
  const auto [first, last] = found.equal_range(hash);
  for (auto each = first; each != last; ++each)
    if (each->second.is(cost)) return each->second;
  if (found.size() == most) found.clear();
  Kind kind{std::string(cost.kernel), cost.order, cost.volume,
            look_up(cost, machine_.devices[device])};
  return found.emplace(hash, std::move(kind))->second;
}

KernelTime KernelTimes::look_up(const Cost& cost, const Device& device) const {
  // By definition (docs/decisions/0024-streams-of-a-device.md): a kernel fills its device if one of
  // twice the order would run at a rate at most a tenth higher, by the machine's own table.
  constexpr double most_gain = 1.1;
  KernelTime time;
  time.known = machine_.has_kernel(device, cost.kernel);
  if (!time.known) return time;
  time.seconds = machine_.kernel_seconds(device, cost.kernel, cost.order, cost.volume);
  // A stated time says nothing of it.
  time.fills = device.space != host_space && cost.order > 0 &&
               time.seconds <= most_gain * machine_.kernel_seconds(device, cost.kernel,
                                                                   2 * cost.order, cost.volume);
  return time;
}

}  // namespace quadriga
