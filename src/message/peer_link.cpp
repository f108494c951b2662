// SPDX-License-Identifier: BSD-3-Clause
// src/message/peer_link.cpp: the error that names a lost rank.
#include "message/peer_link.h"

#include <fmt/format.h>
#include <poll.h>
#include <quadriga/error.h>

namespace quadriga::message {

bool process_lives(int descriptor) noexcept {
  if (descriptor < 0) return true;
  pollfd asked{descriptor, POLLIN, 0};
  return poll(&asked, 1, 0) == 0;
}

std::exception_ptr loss_of(const Group& group, int rank, const PeerLink& link,
                           const std::string& during) {
  const int named = group.rank_of(rank);
  const std::string what =
      link.presence == Presence::left ? "has left the communicator" : "is lost: it " + link.reason;
  return std::make_exception_ptr(
      PeerLost(named, fmt::format("{}: rank {} {}", during, named, what)));
}

}  // namespace quadriga::message
