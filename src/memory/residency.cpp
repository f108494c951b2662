// SPDX-License-Identifier: BSD-3-Clause
// src/memory/residency.cpp: blocks that are taken, and released once nobody uses them.
#include "memory/residency.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error_text.h"
#include "base/units.h"

namespace quadriga {

Residency::Residency(std::span<const SpaceResources> spaces, std::span<const Node> nodes,
                     const MemoryOptions& options, MemoryListener& listener, Replicas& replicas)
    : listener_(listener),
      replicas_(replicas),
      spill_(options.spill_bytes, "", nodes, options.answers) {
  pools_.reserve(spaces.size());
  for (const SpaceResources& space : spaces) near_.push_back(space.node);
  const auto file = std::ranges::find(spaces, true, &SpaceResources::is_file);
  if (file != spaces.end()) file_ = static_cast<SpaceId>(file - spaces.begin());
  for (SpaceId space = 0; space < spaces.size(); ++space)
    if (space == host_space)
      pools_.emplace_back(spill_);
    else if (spaces[space].device != no_device)
      pools_.emplace_back(space, spaces[space].base, spaces[space].bytes);
    else
      pools_.emplace_back();
}

bool Residency::allocate(TileId tile, SpaceId space) {
  if (replicas_.has_memory(tile, space)) return true;
  if (space == host_space && replicas_.bytes(tile) == 0) return true;
  return pools_[space].allocate(replicas_, tile, space == host_space ? node_near(tile) : any_node);
}

/// The host's node near the device that has the content, which a buffer for it is filled from.
int Residency::node_near(TileId tile) const {
  if (!spill_.nodes().are_several()) return any_node;
  const Directory& directory = replicas_.directory();
  const SpaceId owner = directory.owner(tile);
  if (owner != no_space) return near_[owner];
  for (SpaceId space = 1; space < replicas_.spaces(); ++space)
    if (directory.valid(tile, space)) return near_[space];
  return any_node;
}

void Residency::release(TileId tile, SpaceId space) {
  if (space != host_space) listener_.departed(tile, space);
  Directory& directory = replicas_.directory();
  if (directory.valid(tile, space)) directory.dropped(tile, space);
  if (space != host_space)
    listener_.freed(space, replicas_.at(tile, space).block, replicas_.block_bytes(tile, space));
  pools_[space].deallocate(replicas_, tile);
}

bool Residency::release_if_unused(TileId tile, SpaceId space) {
  if (!replicas_.has_block(tile, space)) return true;
  if (replicas_.directory().valid(tile, space) || !replicas_.idle(tile, space)) return false;
  release(tile, space);
  return true;
}

/// Of a replica that nobody uses now and that isn't the only one.
bool Residency::release_if_held(TileId tile, SpaceId space) {
  if (!replicas_.has_block(tile, space) || !replicas_.idle(tile, space) ||
      replicas_.directory().dirty(tile, space))
    return false;
  release(tile, space);
  return true;
}

/// The same of a buffer that has passed its content on: it is kept for others while there is
/// plenty.
void Residency::release_if_passed(TileId tile) {
  if (replicas_.directory().home(tile) != host_space && buffers_are_scarce())
    release_if_held(tile, host_space);
}

void Residency::drop(TileId tile, SpaceId space) {
  release(tile, space);
  listener_.evicted(tile, space);
}

void Residency::catch_up(TileForecast& forecast) {
  Directory& directory = replicas_.directory();
  const auto may_leave = [&](TileId tile, SpaceId space) {
    pools_[space].leaving().may_leave(tile);
    if (directory.owner(tile) == space) pools_[space].leaving().mark(tile);
  };
  later_.clear();
  if (!forecast.take_later_uses(later_))
    for (SpaceId space = 0; space < pools_.size(); ++space)
      for (const TileId tile : pools_[space].residents()) may_leave(tile, space);
  for (const LaterUse& use : later_)
    for_each_space(replicas_.blocks(use.tile), [&](SpaceId space) {
      if (use.space == no_space || use.space == space) may_leave(use.tile, space);
    });
  directory.take_owned([&](TileId tile) {
    const SpaceId owner = directory.owner(tile);
    if (owner != no_space && replicas_.has_block(tile, owner)) pools_[owner].leaving().mark(tile);
  });
}

void Residency::evict(TileId tile) {
  for_each_space(replicas_.blocks(tile), [&](SpaceId space) {
    if (space != host_space && release_if_held(tile, space)) listener_.evicted(tile, space);
  });
}

void Residency::discard(TileId tile) {
  replicas_.directory().lost(tile);
  for_each_space(replicas_.blocks(tile), [&](SpaceId space) { release_if_unused(tile, space); });
}

void Residency::give_home(TileId tile) {
  const SpaceId home = replicas_.directory().home(tile);
  replicas_.directory().write_issued(tile, home);
  replicas_.set_unconfirmed(tile, home, false);
  overwritten(tile, home);
}

void Residency::remove(TileId tile) {
  replicas_.directory().lost(tile);  // a replica that is dirty may go too
  for_each_space(replicas_.blocks(tile), [&](SpaceId space) { release(tile, space); });
  replicas_.remove(tile);
}

void Residency::unpin(TileId tile, SpaceId space) {
  replicas_.directory().unpin(tile, space);
  release_if_unused(tile, space);
  if (space == host_space) release_if_passed(tile);
}

void Residency::overwritten(TileId tile, SpaceId space) {
  for_each_space(replicas_.blocks(tile), [&](SpaceId other) {
    if (other != space) release_if_unused(tile, other);
  });
}

void Residency::copy_ended(const Transfer& transfer) {
  const auto& [tile, from, to, reason, error] = transfer;
  release_if_unused(tile, from);
  release_if_unused(tile, to);
  if (to == file_ && error) file_refused(error);
  if (to == file_ && !error) refused_ = 0;
  if (from == host_space) release_if_passed(tile);
  const bool moves = reason == Reason::evict && to == host_space &&
                     replicas_.has_block(tile, host_space) && buffers_are_scarce();
  const bool is_handed_over = reason == Reason::evict && from == host_space && to != file_ &&
                              replicas_.directory().home(tile) == host_space;
  if ((moves || is_handed_over) && release_if_held(tile, from)) listener_.evicted(tile, from);
}

/// Invariant 3. The failed copy's block is released already.
void Residency::file_refused(const std::exception_ptr& error) {
  const std::size_t before = pools_[file_].capacity();
  pools_[file_].cut();
  refused_ = pools_[file_].capacity() < before ? 0 : refused_ + 1;
  file_refusal_ = text_of(error);
}

std::string Residency::refusal() const {
  if (file_ == no_space) return spill_.refusal();
  return fmt::format("{}; the spill file holds {}{}", spill_.refusal(),
                     format_bytes(static_cast<double>(pools_[file_].capacity())),
                     file_refusal_.empty() ? "" : ": " + file_refusal_);
}

bool Residency::has_plenty(SpaceId space) const noexcept {
  return pools_[space].free_bytes() > pools_[space].capacity() / 2;
}

bool Residency::quiet(SpaceId space) const noexcept {
  return std::ranges::all_of(pools_[space].residents(),
                             [&](TileId tile) { return replicas_.idle(tile, space); });
}

void Residency::validate() const {
  for (const Pool& pool : pools_) pool.validate(replicas_);
}

}  // namespace quadriga
