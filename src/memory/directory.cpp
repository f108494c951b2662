// SPDX-License-Identifier: BSD-3-Clause
// src/memory/directory.cpp: the events of the directory, on one mask of valid replicas a tile.
#include "memory/directory.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <bit>
#include <utility>

namespace quadriga {
namespace {

constexpr std::uint64_t bit(SpaceId space) noexcept { return std::uint64_t{1} << space; }

/// The smallest space of a mask that isn't empty.
SpaceId first_of(std::uint64_t mask) noexcept {
  return static_cast<SpaceId>(std::countr_zero(mask));
}

[[noreturn]] void refuse(std::string_view event, TileId tile, std::string_view expected) {
  fail(Errc::invalid_argument,
       fmt::format("Directory::{}: tile {}: expected {}", event, tile, expected));
}

}  // namespace

std::string_view name(State state) noexcept {
  switch (state) {
    case State::invalid:
      return "invalid";
    case State::shared:
      return "shared";
    case State::exclusive:
      return "exclusive";
    case State::owned:
      return "owned";
    case State::modified:
      return "modified";
  }
  return "?";
}

Directory::Directory(int spaces) : spaces_(static_cast<std::size_t>(spaces)) {
  if (spaces < 1 || spaces > max_spaces)
    fail(Errc::invalid_argument,
         fmt::format("Directory: {} memory spaces; from 1 to {} are possible", spaces, max_spaces));
}

TileId Directory::add(bool home_valid, SpaceId home) {
  require(home < spaces_, "Directory::add: expected a home in a space of this machine");
  TileId tile = first_free_;
  if (tile == no_tile) {
    require(tiles_.size() < no_tile, "Directory::add: no more tile numbers are left");
    replicas_.resize((tiles_.size() + 1) * spaces_);
    tile = static_cast<TileId>(tiles_.size());
    tiles_.emplace_back();
  } else {
    first_free_ = tiles_[tile].next_free;
  }
  const bool is_valid = home_valid && !gone(home);
  const bool is_news = tiles_[tile].owner_is_news;
  tiles_[tile] =
      Tile{.valid = is_valid ? bit(home) : 0, .home = home, .live = true, .owner_is_news = is_news};
  return tile;
}

void Directory::remove(TileId tile) {
  expect_usable("remove", tile, host_space);
  for (SpaceId space = 0; space < spaces_; ++space) {
    expect(pins(tile, space) == 0, "remove", tile, "no replica to be pinned");
    expect(!in_flight(tile, space), "remove", tile, "no copy of it in flight");
  }
  tiles_[tile] = Tile{.owner_is_news = tiles_[tile].owner_is_news, .next_free = first_free_};
  first_free_ = tile;
}

State Directory::state(TileId tile, SpaceId space) const noexcept {
  const Tile& entry = tiles_[tile];
  if (!valid(tile, space)) return State::invalid;
  const bool alone = entry.valid == bit(space);
  if (entry.owner == space) return alone ? State::modified : State::owned;
  return alone ? State::exclusive : State::shared;
}

bool Directory::dirty(TileId tile, SpaceId space) const noexcept {
  const Tile& entry = tiles_[tile];
  return valid(tile, space) && (entry.valid & ~entry.arriving & ~bit(space)) == 0;
}

std::size_t Directory::sources(TileId tile, SpaceId to, std::span<SpaceId> out) const noexcept {
  const Tile& entry = tiles_[tile];
  std::size_t count = 0;
  const auto append = [&](Mask mask) {
    for (mask &= ~bit(to); mask != 0 && count < out.size(); mask &= mask - 1)
      out[count++] = first_of(mask);
  };
  append(entry.valid & ~entry.arriving);
  append(entry.arriving);
  return count;
}

void Directory::copy_issued(TileId tile, SpaceId from, SpaceId to) {
  expect_usable("copy_issued", tile, from);
  expect_usable("copy_issued", tile, to);
  expect(valid(tile, from), "copy_issued", tile, "the source to be valid");
  expect(!valid(tile, to), "copy_issued", tile, "the target to be invalid");
  Replica& source = at(tile, from);
  Replica& target = at(tile, to);
  expect(source.pins < UINT16_MAX, "copy_issued", tile, "fewer pins of one replica");
  expect(target.in_flight < UINT16_MAX, "copy_issued", tile,
         "fewer copies in flight to one replica");
  ++source.pins;
  ++target.in_flight;
  target.source = from;
  Tile& entry = tiles_[tile];
  entry.valid |= bit(to);
  entry.arriving |= bit(to);
  if (to == entry.home) entry.owner = no_space;
}

void Directory::copy_ended(TileId tile, SpaceId from, SpaceId to, bool ok) {
  expect(tile < tiles_.size() && tiles_[tile].live, "copy_ended", tile, "a tile that was added");
  expect(from < spaces_ && to < spaces_, "copy_ended", tile, "spaces of this machine");
  expect(gone(to) || in_flight(tile, to), "copy_ended", tile, "a copy in flight to this replica");
  expect(gone(from) || pins(tile, from) > 0, "copy_ended", tile, "the source to be pinned");
  if (!gone(from)) --at(tile, from).pins;
  if (gone(to)) return;
  Tile& entry = tiles_[tile];
  const bool youngest = --at(tile, to).in_flight == 0;
  if (!youngest || !(entry.arriving & bit(to))) return;  // overtaken by a write
  entry.arriving &= ~bit(to);
  if (ok) return;
  arrival_failed(tile, to);
  if (to == entry.home && valid(tile, from)) set_owner(tile, from);
}

void Directory::write_issued(TileId tile, SpaceId space) {
  expect_usable("write_issued", tile, space);
  Tile& entry = tiles_[tile];
  entry.valid = bit(space);
  entry.arriving = 0;
  entry.owner = no_space;
  if (space != entry.home) set_owner(tile, space);
}

void Directory::pin(TileId tile, SpaceId space) {
  expect_usable("pin", tile, space);
  expect(pins(tile, space) < UINT16_MAX, "pin", tile, "fewer pins of one replica");
  ++at(tile, space).pins;
}

void Directory::unpin(TileId tile, SpaceId space) {
  expect(tile < tiles_.size() && tiles_[tile].live, "unpin", tile, "a tile that was added");
  expect(space < spaces_, "unpin", tile, "a space of this machine");
  if (gone(space)) return;
  expect(pins(tile, space) > 0, "unpin", tile, "a replica that is pinned");
  --at(tile, space).pins;
}

void Directory::dropped(TileId tile, SpaceId space) {
  expect_usable("dropped", tile, space);
  expect(pins(tile, space) == 0, "dropped", tile, "a replica that isn't pinned");
  expect(!in_flight(tile, space), "dropped", tile, "no copy in flight to the replica");
  expect(!dirty(tile, space), "dropped", tile, "the content to have arrived elsewhere too");
  if (valid(tile, space)) invalidate(tile, space);
}

void Directory::lost(TileId tile) {
  expect_usable("lost", tile, host_space);
  tiles_[tile].valid = tiles_[tile].arriving = 0;
  tiles_[tile].owner = no_space;
}

void Directory::restored(TileId tile) {
  expect_usable("restored", tile, host_space);
  Tile& entry = tiles_[tile];
  expect(entry.valid == 0, "restored", tile, "no valid replica");
  expect(!gone(entry.home) && !in_flight(tile, entry.home), "restored", tile, "home to be at rest");
  entry.valid = bit(entry.home);
}

std::size_t Directory::space_lost(SpaceId space, std::span<TileId> out) {
  require(space != host_space && space < spaces_ && !gone(space),
          "Directory::space_lost: expected a device's memory space that is still there");
  gone_ |= bit(space);
  std::size_t count = 0;
  for (TileId tile = 0; tile < tiles_.size(); ++tile) {
    at(tile, space) = Replica{};
    const bool had_content = tiles_[tile].live && written(tile);
    if (!had_content || (!valid(tile, space) && home(tile) != space)) continue;
    if (home(tile) == space)
      lost(tile);
    else
      invalidate(tile, space);
    if (written(tile)) continue;
    if (count < out.size()) out[count] = tile;
    ++count;
  }
  return count;
}

/// Takes a replica's validity; if the newest content then has no keeper, the next best becomes
/// owner.
void Directory::invalidate(TileId tile, SpaceId space) {
  Tile& entry = tiles_[tile];
  entry.valid &= ~bit(space);
  entry.arriving &= ~bit(space);
  if (entry.owner == space) entry.owner = no_space;
  if (entry.valid == 0 || (entry.valid & bit(entry.home)) || entry.owner != no_space) return;
  const Mask arrived = entry.valid & ~entry.arriving;
  set_owner(tile, first_of(arrived != 0 ? arrived : entry.valid));
}

void Directory::set_owner(TileId tile, SpaceId space) {
  tiles_[tile].owner = space;
  if (std::exchange(tiles_[tile].owner_is_news, true)) return;
  news_.push_back(tile);
}

/// Invalidates a replica and those that are to arrive from it, which will get no better.
void Directory::arrival_failed(TileId tile, SpaceId space) {
  invalidate(tile, space);
  for (Mask rest = tiles_[tile].arriving; rest != 0; rest &= rest - 1) {
    const SpaceId next = first_of(rest);
    if ((tiles_[tile].arriving & bit(next)) && at(tile, next).source == space)
      arrival_failed(tile, next);
  }
}

inline void Directory::expect(bool condition, std::string_view event, TileId tile,
                              std::string_view expected) const {
  if (!condition) [[unlikely]]
    refuse(event, tile, expected);
}

inline void Directory::expect_usable(std::string_view event, TileId tile, SpaceId space) const {
  expect(tile < tiles_.size() && tiles_[tile].live, event, tile, "a tile that was added");
  expect(space < spaces_, event, tile, "a space of this machine");
  expect(!gone(space), event, tile, "a space that isn't lost");
}

void Directory::validate() const {
  for (TileId tile = 0; tile < tiles_.size(); ++tile) validate(tile);
}

void Directory::validate(TileId tile) const {
  const auto hold = [tile](bool condition, std::string_view invariant) {
    if (!condition)
      fail(Errc::internal, fmt::format("Directory: tile {} breaks: {}", tile, invariant));
  };
  const Tile& entry = tiles_[tile];
  int keepers = 0;
  bool alone = false;
  for (SpaceId space = 0; space < spaces_; ++space) {
    const State found = state(tile, space);
    keepers += found == State::modified || found == State::owned || found == State::exclusive;
    alone = alone || found == State::modified || found == State::exclusive;
    hold(space != entry.home || (found != State::modified && found != State::owned),
         "home is never modified or owned");
    hold(!(entry.arriving & bit(space)) || in_flight(tile, space),
         "a replica that is still to arrive has a copy in flight");
    hold(!gone(space) ||
             (found == State::invalid && pins(tile, space) == 0 && !in_flight(tile, space)),
         "a lost space has no replica");
    hold(entry.live || (pins(tile, space) == 0 && !in_flight(tile, space)),
         "a removed tile is neither pinned nor in flight");
  }
  hold(keepers <= 1, "at most one replica is modified, owned or exclusive");
  hold(!alone || std::popcount(entry.valid) == 1, "modified and exclusive are alone");
  hold((entry.arriving & ~entry.valid) == 0, "what is to arrive counts as valid");
  const bool stale = entry.valid != 0 && !(entry.valid & bit(entry.home));
  hold(stale == (entry.owner != no_space), "some replica is owner exactly if home is stale");
  hold(!stale || (entry.valid & bit(entry.owner)), "the owner is valid");
  hold(entry.live || entry.valid == 0, "a removed tile has no replica");
}

}  // namespace quadriga
