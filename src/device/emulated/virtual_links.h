// SPDX-License-Identifier: BSD-3-Clause
// src/device/emulated/virtual_links.h: copies that cross a machine's links under a virtual clock:
// their rates, and when they end.
//
// Pure: one thread, which tells it the time.
//
// Invariants
//   1. `routes_` and `limits_` stand beside `flows_`, one each: FairShare reads them as they are.
//   2. Rates are shared anew before anybody asks when the next copy ends, if one has begun or ended
//      since. A flow whose rate stays keeps its end to the nanosecond.
#pragma once

#include <quadriga/machine.h>

#include <cstdint>
#include <vector>

#include "device/backend.h"
#include "device/fair_share.h"

namespace quadriga {

class VirtualLinks {
 public:
  explicit VirtualLinks(const Machine& machine);

  /// From the begin of a copy until its bytes begin to move.
  Nanoseconds latency(int route) const;
  /// The bytes of a copy begin to move. `limit`: bytes a second that it can't exceed.
  void begin(Nanoseconds now, StreamId stream, std::uint64_t sequence, int route, double bytes,
             double limit);
  /// When the next one ends, if none begins before; `never` if none moves.
  Nanoseconds next_end(Nanoseconds now);
  /// Takes out those that have ended by now, and calls visit(stream, sequence) for each.
  template <class Visit>
  void take_ended(Nanoseconds now, Visit&& visit) {
    for (std::size_t i = 0; i < flows_.size();) {
      if (flows_[i].end > now) {
        ++i;
        continue;
      }
      visit(flows_[i].stream, flows_[i].sequence);
      take(i);
    }
  }

 private:
  struct Flow {
    StreamId stream = 0;
    std::uint64_t sequence = 0;
    double bytes_left = 0;
    double bytes_per_nanosecond = 0;
    Nanoseconds updated = 0;
    Nanoseconds end = 0;
  };
  void share(Nanoseconds now);
  void take(std::size_t index);

  FairShare share_;
  std::vector<double> latencies_;  ///< Nanoseconds, of each route.
  std::vector<Flow> flows_;
  std::vector<int> routes_;
  std::vector<double> limits_;
  std::vector<double> rates_;  ///< Scratch.
  bool changed_ = false;       ///< One began or ended since rates were shared.
};

}  // namespace quadriga
