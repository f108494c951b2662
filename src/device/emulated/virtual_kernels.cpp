// SPDX-License-Identifier: BSD-3-Clause
// src/device/emulated/virtual_kernels.cpp: speeds, and what they leave.
#include "device/emulated/virtual_kernels.h"

#include <utility>

namespace quadriga {

// More kernels than the table can tell of share what the most that it tells of reach.
double VirtualKernels::speed(const Running& kernel) const noexcept {
  const std::size_t count = running_.size();
  const std::size_t known = std::min(count, kernel.speeds.size());
  return kernel.speeds[known - 1] * static_cast<double>(known) / static_cast<double>(count);
}

void VirtualKernels::advance(Nanoseconds now) noexcept {
  if (!shares_) return;
  const auto passed = static_cast<double>(now - updated_);
  for (Running& kernel : running_) kernel.left -= passed * speed(kernel);
  updated_ = now;
}

std::optional<VirtualKernels::Next> VirtualKernels::next() const {
  if (running_.empty()) return {};
  const auto wait_of = [&](const Running& kernel) { return kernel.left / speed(kernel); };
  const auto next = std::ranges::min_element(running_, {}, [&](const Running& kernel) {
    return std::pair(wait_of(kernel), kernel.sequence);
  });
  return Next{updated_ + whole_nanoseconds(wait_of(*next)), next->sequence};
}

}  // namespace quadriga
