// SPDX-License-Identifier: BSD-3-Clause
// src/device/meeting_variants.cpp: variants whose last to come works for all.
#include <algorithm>
#include <memory>
#include <utility>

#include "device/kinds.h"
#include "device/recorded_together.h"

namespace quadriga {

bool kernels_share_memory(const Machine& machine, std::span<const DeviceId> devices) {
  return std::ranges::all_of(devices, [&](DeviceId each) {
    const DeviceKind kind = machine.devices[each].kind;
    return properties_of(kind).host_reaches_memory && variants_of(kind) == DeviceKind::cpu;
  });
}

std::vector<Kernel> meeting_variants(std::size_t members,
                                     std::function<void(std::span<const Arguments>)> work) {
  const auto of_all = std::make_shared<const Meeting::Work>(
      [work = std::move(work)](std::span<const Meeting::Member> all) {
        std::vector<Arguments> arguments;
        for (const Meeting::Member& each : all) arguments.push_back(each.arguments);
        work(arguments);
      });
  std::vector<Kernel> variants;
  for (std::size_t index = 0; index < members; ++index)
    variants.emplace_back([=](const Arguments& own) {
      own.param<MeetingParams>().meeting->join(index, {own, 0}, *of_all);
    });
  return variants;
}

}  // namespace quadriga
