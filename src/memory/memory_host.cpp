// SPDX-License-Identifier: BSD-3-Clause
// src/memory/memory_host.cpp: the host's buffers, for tiles that are at home elsewhere or nowhere:
// who gets one, and who leaves it.
//
// Room is made by tiles that a device holds as well, and by those that are at home on one: if they
// are dirty, they are written home first. Nobody waits here: who finds no buffer comes again when
// something has ended. Two who come by turns don't undo for ever what the other did: a buffer is
// taken from a tile only for a copy that is queued at once, or for a task that is issued at once;
// and who leaves a device to a buffer that is scarce has left the device when the copy ends.
#include <algorithm>

#include "memory/memory.h"

namespace quadriga {

bool Memory::has_host_memory(TileId tile) {
  if (has_memory(tile, host_space) || bytes(tile) == 0) return true;
  std::byte* const buffer = spill_.allocate(block_bytes(tile, host_space));
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
      if (is_new && !has_host_memory(tile)) missing += rounded(tile, host_space);
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

/// Replicas that may leave the host now, to a home on a device if they are dirty. What has no home
/// must be on a device as well.
void Memory::collect_on_host(std::span<const Need> needs) {
  candidates_.clear();
  for (const TileId tile : spaces_[host_space].residents) {
    const SpaceId home = directory_.home(tile);
    const bool is_dirty = directory_.dirty(tile, host_space);
    if (directory_.pins(tile, host_space) > 0 || directory_.in_flight(tile, host_space) ||
        (is_dirty && (home == host_space || place(tile, host_space).unconfirmed)) ||
        std::ranges::count(needs, tile, &Need::tile) > 0)
      continue;
    candidates_.push_back(candidate(tile, host_space, home));
  }
}

bool Memory::send_home(TileId tile, Reason reason) {
  if (write_back(tile, reason)) return true;
  const Need need{tile, Access::read};
  return take_host_memory({&need, 1}) && write_back(tile, reason);
}

void Memory::drop_if_passed(TileId tile) {
  if (directory_.home(tile) != host_space && buffers_are_scarce()) drop_if_held(tile, host_space);
}

/// Gives up a replica that nobody uses now and that isn't the only one.
bool Memory::drop_if_held(TileId tile, SpaceId space) {
  const bool stays = !has_block(tile, space) || directory_.pins(tile, space) > 0 ||
                     directory_.in_flight(tile, space) || directory_.dirty(tile, space);
  if (!stays) give_up(tile, space);
  return !stays;
}

}  // namespace quadriga
