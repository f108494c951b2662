// SPDX-License-Identifier: BSD-3-Clause
// src/engine/host_pool_hold.cpp: accesses of the host's, where it has the only replica.
#include "engine/host_pool.h"

namespace quadriga {

bool HostPool::give_back(std::span<Datum* const> data, bool overwrites, Nanoseconds) {
  for (Datum* const each : data)
    if (overwrites) each->poisoned.store(false, std::memory_order_release);
  return true;
}

void HostPool::end_hold(Task& hold, std::span<Datum* const> written) {
  give_back(written, true, never);
  graph_.ended(hold, nullptr,
               [&](Task& successor, std::uint64_t) { push(*workers_.back(), successor); });
}

}  // namespace quadriga
