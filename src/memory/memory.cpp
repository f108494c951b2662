// SPDX-License-Identifier: BSD-3-Clause
// src/memory/memory.cpp: events that concern more than one part.
#include "memory/memory.h"

namespace quadriga {

Memory::Memory(Instructions& instructions, const Machine& machine,
               std::span<const SpaceResources> spaces, TileForecast& forecast,
               MemoryListener& listener, const MemoryOptions& options)
    : listener_(listener),
      replicas_(machine),
      transfers_(instructions, machine, spaces, replicas_),
      residency_(spaces, machine.nodes, options, listener, replicas_),
      write_backs_(forecast, replicas_, transfers_, residency_),
      final_writes_(forecast, replicas_, transfers_, residency_, write_backs_),
      evictor_(options.rule, forecast, replicas_, transfers_, residency_, write_backs_),
      hand_over_(options.rule, forecast, replicas_, transfers_, residency_, write_backs_),
      staging_(forecast, replicas_, transfers_, residency_, evictor_) {}

void Memory::used(TileId tile, SpaceId space, Access access, Event done) {
  transfers_.used(tile, space, access, done);
  if (writes(access)) residency_.overwritten(tile, space);
}

bool Memory::completed(const Completion& delivered) {
  Completion completion = delivered;
  if (!transfers_.ended(completion, ended_)) return false;
  std::size_t left = 0;
  for (const Transfer& each : ended_)
    if (each.tile != no_tile) left += replicas_.bytes(each.tile);
  // Tiles of one copy share its time by their bytes, one after the other.
  for (const auto& [tile, from, to, reason, error] : ended_) {
    completion.error = error;
    if (tile == no_tile) {
      listener_.probed(from, completion);
      return true;
    }
    const std::size_t bytes = replicas_.bytes(tile);
    const auto time = static_cast<double>(delivered.end - completion.begin);
    const double share = left > bytes ? static_cast<double>(bytes) / static_cast<double>(left) : 1;
    completion.end = completion.begin + static_cast<Nanoseconds>(time * share);
    left -= bytes;
    const Transfer transfer{tile, from, to, reason, error};
    residency_.copy_ended(transfer);
    final_writes_.copy_ended(transfer);
    listener_.copy_ended(completion.event.stream, reason, tile, from, to, bytes, completion);
    completion.begin = completion.end;
  }
  return true;
}

void Memory::space_lost(SpaceId space, std::vector<TileId>& lost) {
  lost.resize(replicas_.tiles());
  lost.resize(replicas_.directory().space_lost(space, lost));
  for (TileId tile = 0; tile < replicas_.tiles(); ++tile)
    if (replicas_.at_home(tile, space)) replicas_.clear(tile, space);
  residency_.space_lost(space);
}

void Memory::validate() {
  directory().validate();
  residency_.validate();
  evictor_.validate();
}

}  // namespace quadriga
