// SPDX-License-Identifier: BSD-3-Clause
// src/memory/link_tokens.h: how much is queued on a link that nobody waits for yet.
//
// What a task needs is queued whatever stands before it. What is fetched or written back ahead
// takes a token of its link: it must not stand in the way of what is needed next, and can still go
// another way as long as it isn't queued; yet the link shall not be idle until whoever queues the
// next copy has reacted. Scheduler, memory and rehearsals of plans ask here.
#pragma once

#include <quadriga/machine.h>

#include <cstddef>

namespace quadriga {

/// There is a token while fewer copies are in flight than `copies`, of whatever size, and while
/// those in flight take at most `seconds` if they have the link to themselves.
struct LinkTokens {
  std::size_t copies = 0;
  double seconds = 0;

  constexpr bool are_left(std::size_t in_flight, double in_flight_seconds) const noexcept {
    return in_flight < copies || in_flight_seconds <= seconds;
  }
};

/// Most ends that whoever decides takes at once, before it queues what follows from them.
inline constexpr std::size_t ends_at_once = 64;

/// To a device: what is fetched ahead stands in the way of what a task needs next.
inline constexpr LinkTokens tokens_to_device{.copies = 1, .seconds = 1e-3};
/// To the host, where no task waits for what comes behind: one that moves and one behind it, or as
/// much as moves before a copy's end is seen and the next one queued. That takes at most as long as
/// what follows from other ends that were taken before: on each of them a task is decided and
/// queued. More would still wait for this link when another becomes free.
LinkTokens tokens_to_host(const Machine& machine);

}  // namespace quadriga
