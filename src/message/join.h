// SPDX-License-Identifier: BSD-3-Clause
// src/message/join.h: how processes of one host become the ranks of a world.
#pragma once

#include <memory>
#include <string>

#include "message/endpoint.h"
#include "message/wire/proof.h"

namespace quadriga::message {

/// Who joins which world.
struct Joining {
  std::string address;  ///< MeetingPoint.
  int rank = 0;
  int size = 1;
  Token token{};
};

/// Returns once all ranks have come. The first rank makes the shared memory and hands it out with
/// what wakes the others and tells their ends; nothing stays in the file system.
///
/// A rank and the first one prove to each other that they know the token, which isn't sent; both
/// must be the same user's. Strangers are turned away, and the join goes on.
/// Errors:  invalid_argument (rank, size, address, another token); deadline naming the ranks that
///          didn't come; peer_lost; unavailable.
std::shared_ptr<Endpoint> join(const Joining& joining, const Patience& patience);

}  // namespace quadriga::message
