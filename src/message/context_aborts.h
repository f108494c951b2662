// SPDX-License-Identifier: BSD-3-Clause
// src/message/context_aborts.h: the contexts that ended early, and why.
//
// Invariants
//   1. All functions are called with the endpoint's lock.
//   2. The first reason of a context stays, as long as the world lives: no later call works.
//   3. Another rank may abort most_aborts contexts, each for one entry here.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "message/transfer.h"

namespace quadriga::message {

/// Contexts that a rank may abort.
inline constexpr std::size_t most_aborts = 10'000;

class ContextAborts {
 public:
  /// Why a context was aborted; null if it wasn't.
  const ContextAbort* find(std::uint64_t context) const noexcept {
    const auto found = all_.find(context);
    return found == all_.end() ? nullptr : &found->second;
  }
  /// By this rank.
  void add(const ContextAbort& why) { all_.emplace(why.context, why); }
  /// By another, which has aborted `its` before; false if it aborted too many.
  bool add_from(const ContextAbort& why, std::size_t& its) {
    if (!all_.emplace(why.context, why).second) return true;
    if (++its > most_aborts) return false;
    new_.push_back(why.context);
    return true;
  }
  /// Contexts that other ranks aborted since it was asked last.
  std::vector<std::uint64_t> take_new() noexcept { return std::exchange(new_, {}); }

 private:
  std::map<std::uint64_t, ContextAbort> all_;
  std::vector<std::uint64_t> new_;
};

}  // namespace quadriga::message
