// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/gang_claims.h: in which order gangs get room on several devices at once.
//
// A gang that finds no room on one of its devices claims all of them: who comes later gets none
// there. What holds room without a claim ends without asking for more, so the oldest claim of all
// gets its turn, and no gang passes another on one device while it is passed on the next.
//
// Pure. Invariants
//   1. A gang's claims are made in one step, and dropped in one step.
//   2. Claims have one order, which is that on each device.
#pragma once

#include <cstdint>
#include <vector>

#include "device/backend.h"

namespace quadriga {

/// From 1; 0: none.
using GangId = std::uint64_t;

class GangClaims {
 public:
  /// A bit a device.
  using Devices = std::uint64_t;

  /// Behind all claims made so far. Nothing if the gang has claims.
  void claim(GangId gang, Devices devices);
  /// The gang has started, or never will. Nothing if it has no claims.
  void drop(GangId gang);
  /// Who gets room on a device next; 0: whoever comes.
  GangId first(DeviceId device) const noexcept;
  /// Whether nobody has claimed one of these devices before the gang.
  bool has_turn(GangId gang, Devices devices) const noexcept;
  /// All that are claimed.
  Devices claimed() const noexcept;
  /// The oldest claim of all; 0 if there is none.
  GangId oldest() const noexcept { return claims_.empty() ? 0 : claims_.front().gang; }

 private:
  struct Claim {
    GangId gang = 0;
    Devices devices = 0;
  };
  std::vector<Claim> claims_;  ///< Oldest first.
};

}  // namespace quadriga
