// SPDX-License-Identifier: BSD-3-Clause
// src/memory/link_tokens.h: how much is queued on a link that nobody waits for yet.
//
// What a task needs is queued whatever stands before it. What is fetched or written back ahead
// takes a token of its link: it must not stand in the way of what is needed next, and can still go
// another way as long as it isn't queued; yet the link shall not be idle until whoever queues the
// next copy has reacted. Scheduler, memory and rehearsals of plans ask here.
#pragma once

#include <cstddef>

namespace quadriga {

/// Of copies that take a token, beyond which none is left.
inline constexpr double most_queued_seconds = 1e-3;

/// Whether a link has a token, in one direction. `copies`: those in flight there, `seconds`: what
/// they take if they have the link to themselves. An idle link has one for a copy of any size.
constexpr bool has_link_token(std::size_t copies, double seconds) noexcept {
  return copies == 0 || seconds <= most_queued_seconds;
}

}  // namespace quadriga
