// SPDX-License-Identifier: BSD-3-Clause
// src/message/endpoint_loss.cpp: ranks that are lost, contexts that end, and who is left.
#include <fmt/format.h>
#include <quadriga/error.h>

#include "base/process.h"
#include "message/endpoint_hold.h"

namespace quadriga::message {

void Endpoint::abort(const Group& group, std::uint64_t context, const std::string& why,
                     int lost) noexcept {
  const std::string text = fmt::format("a collective failed on rank {}: {}", group.rank, why);
  abort_with(group, {context, text.substr(0, 1000), lost});
}

void Endpoint::revoke(const Group& group, std::uint64_t context, int lost) noexcept {
  abort_with(group, {context,
                     fmt::format("rank {} has shrunk the communicator, as rank {} is gone",
                                 group.rank, group.rank_of(lost)),
                     lost});
}

void Endpoint::abort_with(const Group& group, const ContextAbort& why) noexcept {
  if (process_id() != owner_) return;
  try {
    const Hold hold(*this);
    if (!traffic_.aborts().find(why.context)) traffic_.abort(group, why);
  } catch (...) {
    // The others have their own deadlines.
  }
}

RankSet Endpoint::agree_on_present(const Group& group, std::uint64_t context, std::uint64_t key) {
  check_not_forked(owner_, "this communicator");
  RankSet present;
  {
    const Hold hold(*this);
    check_usable();
    traffic_.look_for_departures();
    for (const int rank : group.world) {
      // Another may have told of a loss that this rank's service thread hasn't seen yet.
      if (rank != rank_ && !process_lives(traffic_.link(rank).process))
        traffic_.lose(rank, Presence::lost, "has ended");
      if (rank == rank_ || traffic_.link(rank).presence == Presence::here) present.add(rank);
    }
    for (const std::uint64_t each : {context, context + 1})
      if (const ContextAbort* const why = traffic_.aborts().find(each))
        if (why->lost != rank_ && group.rank_of(why->lost) >= 0) present.remove(why->lost);
  }
  return agree(*segment_, rank_, key, present);
}

void Endpoint::check(const Group& group, CallKind operation, std::uint64_t context) {
  check_not_forked(owner_, "this communicator");
  const Hold hold(*this);
  check_usable();
  if (const ContextAbort* const found = traffic_.aborts().find(context))
    std::rethrow_exception(found->error(group));
  for (const int rank : group.world) {
    const PeerLink& link = traffic_.link(rank);
    if (link.presence == Presence::lost)
      std::rethrow_exception(loss_of(group, rank, link, std::string(name(operation))));
  }
}

Presence Endpoint::presence(int rank) {
  const Hold hold(*this);
  return traffic_.link(rank).presence;
}

void Endpoint::note_end(int rank) {
  const Hold hold(*this);
  traffic_.look_for_departures();
  traffic_.lose(rank, Presence::lost, "has ended");
}

}  // namespace quadriga::message
