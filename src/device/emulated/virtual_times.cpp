// SPDX-License-Identifier: BSD-3-Clause
// src/device/emulated/virtual_times.cpp: rows of the table, and noise.
#include "device/emulated/virtual_times.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <string>

#include "base/random.h"

namespace quadriga {

VirtualTimes::VirtualTimes(const Machine& machine, double noise, std::uint64_t seed)
    : machine_(machine),
      tells_at_once_(std::ranges::any_of(
          machine.kernels,
          [](const auto& row) { return row.first.find('*') != std::string::npos; })),
      noise_(noise),
      seed_(seed) {
  require(noise >= 0 && noise < 1, "the noise of a virtual clock is in [0, 1)");
}

// Drawn by the operation's number, so that it doesn't depend on what else goes on.
double VirtualTimes::with_noise(double duration, std::uint64_t sequence) const noexcept {
  if (noise_ == 0) return duration;
  const auto bits = mix(seed_ ^ mix(sequence)) >> 11;
  return duration * (1 + noise_ * (2 * static_cast<double>(bits) * 0x1p-53 - 1));
}

double VirtualTimes::seconds(const Launch& launch, const Device& device) const {
  const Cost& cost = launch.cost;
  if (cost.kernel == no_work) return 0;
  if (cost.kernel.empty()) {
    fail(Errc::unavailable,
         fmt::format("codelet '{}' has no cost, which the virtual clock needs: give it a 'cost' "
                     "that names a kernel of the machine's table",
                     launch.name));
  }
  const double seconds = machine_.launch_seconds +
                         machine_.kernel_seconds(device, cost.kernel, cost.order, cost.volume);
  if (!(seconds >= 0 && seconds < 1e9)) {
    fail(Errc::invalid_argument,
         fmt::format("codelet '{}' would take {} s by its cost (order {}, volume {})", launch.name,
                     seconds, cost.order, cost.volume));
  }
  return seconds;
}

KernelSpeeds VirtualTimes::speeds(const Launch& launch, const Device& device) const {
  KernelSpeeds speeds = taking_turns;
  if (!tells_at_once_) return speeds;
  const Cost& cost = launch.cost;
  for (std::size_t count = 2; count <= speeds.size(); ++count) {
    const std::string row = row_at_once(cost.kernel, count);
    const auto others = static_cast<double>(count);
    speeds[count - 1] = speeds[count - 2] * (others - 1) / others;
    if (!machine_.has_kernel(device, row)) continue;
    const double alone = machine_.kernel_seconds(device, cost.kernel, cost.order, cost.volume);
    const double beside = machine_.kernel_seconds(device, row, cost.order, cost.volume);
    speeds[count - 1] = std::clamp(alone / beside, 1 / others, 1.0);
  }
  return speeds;
}

}  // namespace quadriga
