// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/gang_claims.cpp: one order of claims on all devices.
#include "schedule/gang_claims.h"

#include <algorithm>

namespace quadriga {

void GangClaims::claim(GangId gang, Devices devices) {
  if (std::ranges::find(claims_, gang, &Claim::gang) == claims_.end())
    claims_.push_back({gang, devices});
}

void GangClaims::drop(GangId gang) {
  std::erase_if(claims_, [&](const Claim& each) { return each.gang == gang; });
}

GangId GangClaims::first(DeviceId device) const noexcept {
  const auto found = std::ranges::find_if(
      claims_, [&](const Claim& each) { return (each.devices >> device & 1) != 0; });
  return found == claims_.end() ? 0 : found->gang;
}

bool GangClaims::has_turn(GangId gang, Devices devices) const noexcept {
  for (const Claim& each : claims_) {
    if (each.gang == gang) return true;
    if ((each.devices & devices) != 0) return false;
  }
  return true;
}

GangClaims::Devices GangClaims::claimed() const noexcept {
  Devices devices = 0;
  for (const Claim& each : claims_) devices |= each.devices;
  return devices;
}

}  // namespace quadriga
