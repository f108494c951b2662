// SPDX-License-Identifier: BSD-3-Clause
// src/memory/memory.cpp: events that concern more than one part.
#include "memory/memory.h"

namespace quadriga {

Memory::Memory(Instructions& instructions, const Machine& machine,
               std::span<const SpaceResources> spaces, MemoryListener& listener,
               const MemoryOptions& options)
    : listener_(listener),
      replicas_(machine),
      transfers_(instructions, machine, spaces, replicas_),
      residency_(spaces, options, listener, replicas_, transfers_),
      staging_(replicas_, transfers_, residency_) {}

void Memory::used(TileId tile, SpaceId space, Access access, Event done) {
  transfers_.used(tile, space, access, done);
  if (writes(access)) residency_.overwritten(tile, space);
}

bool Memory::completed(const Completion& delivered) {
  const std::optional<Transfer> transfer = transfers_.ended(delivered);
  if (!transfer) return false;
  const auto& [tile, from, to, reason, error] = *transfer;
  Completion completion = delivered;
  completion.error = error;
  if (tile == no_tile) {
    listener_.probed(from, completion);
    return true;
  }
  residency_.copy_ended(*transfer);
  listener_.copy_ended(completion.event.stream, reason, tile, from, to, replicas_.bytes(tile),
                       completion);
  return true;
}

void Memory::space_lost(SpaceId space, std::vector<TileId>& lost) {
  lost.resize(replicas_.tiles());
  lost.resize(replicas_.directory().space_lost(space, lost));
  for (TileId tile = 0; tile < replicas_.tiles(); ++tile)
    if (replicas_.at_home(tile, space)) replicas_.at(tile, space) = Replica{};
  residency_.space_lost(space);
}

void Memory::validate() const {
  directory().validate();
  residency_.validate();
}

}  // namespace quadriga
