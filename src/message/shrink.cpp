// SPDX-License-Identifier: BSD-3-Clause
// src/message/shrink.cpp: the communicator of those that are left.
#include <fmt/format.h>
#include <quadriga/error.h>

#include "base/random.h"
#include "message/communicator.h"
#include "message/wire/agreement.h"

namespace quadriga::message {

CommunicatorCore CommunicatorCore::shrink() {
  // All survivors have shrunk this communicator as often, whatever else failed.
  const std::uint64_t key = mix(mix(context_ + 2) ^ ++shrinks_) | 1;
  const RankSet left = endpoint_->agree_on_present(*group_, context_, key);
  auto group = std::make_shared<Group>();
  int lost = -1;
  for (const int world : group_->world) {
    if (!left.has(world)) {
      lost = lost < 0 ? world : lost;
      continue;
    }
    if (world == endpoint_->rank()) group->rank = group->size();
    group->world.push_back(world);
  }
  if (!left.has(endpoint_->rank()))
    throw PeerLost(rank(), fmt::format("shrink: the other ranks take rank {} for lost", rank()));
  // Who still waits for messages of this communicator would wait for ranks that left it.
  if (lost >= 0)
    for (const std::uint64_t context : {context_, context_ + 1})
      endpoint_->revoke(*group_, context, lost);
  return CommunicatorCore(endpoint_, std::move(group), key & ~std::uint64_t{1});
}

}  // namespace quadriga::message
