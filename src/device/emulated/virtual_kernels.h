// SPDX-License-Identifier: BSD-3-Clause
// src/device/emulated/virtual_kernels.h: the kernels that run on one device under a virtual clock,
// and what is left of each.
//
// Pure: one thread, which tells it the time.
//
// Invariants
//   1. Kernels of an accelerator slow each other down: whenever one begins or ends, what the others
//      have done until then is counted first, by advance(). Cores have nothing to share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "device/backend.h"
#include "device/emulated/virtual_times.h"

namespace quadriga {

class VirtualKernels {
 public:
  struct Running {
    StreamId stream = 0;
    std::uint64_t sequence = 0;
    double left = 0;  ///< Nanoseconds of its work, as if it ran alone.
    KernelSpeeds speeds = taking_turns;
  };
  struct Next {
    Nanoseconds end = 0;
    std::uint64_t sequence = 0;
  };

  /// `slots`: how many run at once; at least one does. `shares`: they slow each other down.
  VirtualKernels(int slots, bool shares)
      : slots_(static_cast<std::size_t>(std::max(1, slots))), shares_(shares) {}

  bool has_slot() const noexcept { return running_.size() < slots_; }
  bool shares() const noexcept { return shares_; }
  /// It is now; the time never goes back.
  void advance(Nanoseconds now) noexcept;
  /// At the time of the last advance().
  void begin(const Running& kernel) { running_.push_back(kernel); }
  /// Of those that share: which ends next, and when, unless another one begins or ends before.
  std::optional<Next> next() const;
  /// Takes out those that have got all their work, but for the rounding to nanoseconds, and calls
  /// visit(kernel) for each.
  template <class Visit>
  void take_done(Visit&& visit) {
    std::erase_if(running_, [&](const Running& kernel) {
      if (kernel.left > 1e-3) return false;
      visit(kernel);
      return true;
    });
  }
  /// Takes out the one of this number, wherever it stands.
  void take(std::uint64_t sequence) {
    std::erase_if(running_, [&](const Running& kernel) { return kernel.sequence == sequence; });
  }

 private:
  double speed(const Running& kernel) const noexcept;

  std::size_t slots_;
  bool shares_;
  std::vector<Running> running_;
  Nanoseconds updated_ = 0;  ///< When they got work last.
};

}  // namespace quadriga
