// SPDX-License-Identifier: BSD-3-Clause
// src/memory/memory_host.cpp: the host's buffers, for tiles that are at home elsewhere or nowhere:
// who gets one, and who leaves it.
//
// Room is made by tiles that are at home on a device: what is clean is given up, what is dirty is
// written home first. Nobody waits here: who finds no buffer comes again when something has ended.
// Two who come by turns don't undo what the other did for ever: a buffer is taken from a tile only
// for a copy that is queued at once, or for a task that is issued at once.
#include <algorithm>

#include "memory/memory.h"

namespace quadriga {

bool Memory::has_host_memory(TileId tile) {
  if (has_memory(tile, host_space) || bytes(tile) == 0) return true;
  std::byte* const buffer = spill_.allocate(bytes(tile));
  if (!buffer) return false;
  place(tile, host_space).block = buffer;
  note_resident(tile, host_space);
  return true;
}

bool Memory::take_host_memory(std::span<const Need> needs) {
  for (;;) {
    std::size_t missing = 0;
    for (std::size_t i = 0; i < needs.size(); ++i) {
      const TileId tile = needs[i].tile;
      const bool is_new = std::ranges::count(needs.first(i), tile, &Need::tile) == 0;
      if (is_new && !has_host_memory(tile)) missing += Spill::rounded(bytes(tile));
    }
    if (missing == 0) return true;
    if (!make_host_room(missing, needs)) break;
  }
  for (const Need& need : needs) drop_if_unused(need.tile, host_space);
  return false;
}

/// Frees buffers of so many bytes, of tiles other than these, or starts to. True if it has.
bool Memory::make_host_room(std::size_t needed, std::span<const Need> needs) {
  // Even where there seems to be room, a disk may be full.
  if (needed > spill_.room()) needed -= spill_.room();
  const std::size_t leaving_bytes = spaces_[host_space].leaving_bytes;
  if (leaving_bytes >= needed) return false;
  collect_on_host(needs);
  const auto leaving = std::span(candidates_).first(choose_anywhere(rule_, candidates_, needed));
  for (const Candidate& each : leaving)
    if (each.dirty) write_back(each.tile, Reason::evict);
  if (leaving.empty() || std::ranges::any_of(leaving, &Candidate::dirty)) return false;
  for (const Candidate& each : leaving) give_up(each.tile, host_space);
  return true;
}

/// Replicas that may leave the host now, to a home on a device if they are dirty.
void Memory::collect_on_host(std::span<const Need> needs) {
  candidates_.clear();
  for (const TileId tile : spaces_[host_space].residents) {
    const SpaceId home = directory_.home(tile);
    const Place& replica = place(tile, host_space);
    if (directory_.pins(tile, host_space) > 0 || directory_.in_flight(tile, host_space) ||
        (directory_.valid(tile, host_space) && (home == host_space || replica.unconfirmed)) ||
        std::ranges::count(needs, tile, &Need::tile) > 0)
      continue;
    Candidate candidate;
    candidate.tile = tile;
    candidate.bytes = Spill::rounded(bytes(tile));
    candidate.next_use = listener_.next_use(tile, host_space);
    candidate.last_use = replica.last_use;
    candidate.dirty = directory_.dirty(tile, host_space);
    if (candidate.dirty)
      candidate.write_back_seconds =
          machine_.copy_seconds(host_space, home, static_cast<double>(bytes(tile)));
    candidates_.push_back(candidate);
  }
}

bool Memory::send_home(TileId tile, Reason reason) {
  if (write_back(tile, reason)) return true;
  const Need need{tile, Access::read};
  return take_host_memory({&need, 1}) && write_back(tile, reason);
}

void Memory::drop_if_passed(TileId tile) {
  if (directory_.home(tile) == host_space || !has_block(tile, host_space)) return;
  const bool is_needed = directory_.pins(tile, host_space) > 0 ||
                         directory_.in_flight(tile, host_space) ||
                         directory_.dirty(tile, host_space);
  if (!is_needed && spill_.used() > spill_.limit() / 2) give_up(tile, host_space);
}

}  // namespace quadriga
