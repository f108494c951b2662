// SPDX-License-Identifier: BSD-3-Clause
// src/memory/directory.h: which replicas of each tile exist, in which state, and which is newest.
//
// Pure: knows no thread, device or clock. Its states follow the order of *issue*: a replica whose
// copy or kernel is queued counts as valid, since whoever uses it waits for its event; in_flight()
// and unconfirmed() tell what has not ended yet.
//
// States (MOESI), for the replicas of one tile:
//   modified   the only valid replica, and home (the host's) is stale: write it back before it goes.
//   owned      newest, home is stale, other valid replicas exist (those are shared).
//   exclusive  the only valid replica, and home is not stale (so it is the host's).
//   shared     valid beside others; home is valid, or some other replica is owned.
//   invalid    no content.
// Invariants (validate()):
//   1. At most one replica of a tile is modified, owned or exclusive.
//   2. modified and exclusive exclude any other valid replica.
//   3. Home is valid exactly if no replica elsewhere is modified or owned and the tile was written.
//      The host's own replica may be modified (a homeless tile that the host holds in a buffer is
//      home too) never; it is exclusive or shared.
//   4. An in-flight replica is valid, and its source was valid and is pinned until it ends.
//   5. Pins are never negative; a replica that is pinned isn't dropped.
#pragma once

#include <quadriga/types.h>

#include <span>
#include <vector>

namespace quadriga {

using TileId = std::uint32_t;
inline constexpr TileId no_tile = 0xffffffff;

enum class State : std::uint8_t { invalid, shared, exclusive, owned, modified };

std::string_view name(State state) noexcept;

class Directory {
 public:
  /// `spaces` counts the host's (0) and each device's.
  explicit Directory(int spaces);

  int spaces() const noexcept { return spaces_; }

  /// A tile whose content is at home (host replica exclusive), or that no one has written yet.
  TileId add(bool home_valid);
  /// Forgets a tile; nothing of it is pinned or in flight. Its id may be given out again.
  void remove(TileId tile);

  State state(TileId tile, SpaceId space) const noexcept;
  bool valid(TileId tile, SpaceId space) const noexcept { return state(tile, space) != State::invalid; }
  /// A copy to this replica is queued and has not ended.
  bool in_flight(TileId tile, SpaceId space) const noexcept;
  int pins(TileId tile, SpaceId space) const noexcept;
  /// Some replica is valid.
  bool written(TileId tile) const noexcept;
  /// Dropping this replica would lose the newest content, or the only one that isn't in flight from it.
  bool dirty(TileId tile, SpaceId space) const noexcept;
  /// The replica that the newest content must be written back from; no_space if home is valid or nothing is.
  SpaceId owner(TileId tile) const noexcept;

  /// Valid replicas other than `to`, for the caller to choose a source by link: those that have
  /// arrived first, then those in flight. Returns how many were written.
  std::size_t sources(TileId tile, SpaceId to, std::span<SpaceId> out) const noexcept;

  // Events. Each checks its precondition with require() and leaves the state as it was if it fails.

  /// A copy was queued: `to` becomes valid and in flight, `from` is pinned. A copy to the host cleans
  /// the tile (write-back): modified and owned become shared.
  void copy_issued(TileId tile, SpaceId from, SpaceId to);
  /// It ended; `from` is unpinned. Failed: `to` becomes invalid unless it was written meanwhile; if it
  /// was a write-back, `from` is owned or modified again if it is still valid.
  void copy_ended(TileId tile, SpaceId from, SpaceId to, bool ok);
  /// A kernel that writes this replica was queued: it alone stays valid (modified, or exclusive on the host).
  void write_issued(TileId tile, SpaceId space);
  /// Someone who uses the replica was queued, or ended.
  void pin(TileId tile, SpaceId space);
  void unpin(TileId tile, SpaceId space);
  /// The memory of a replica was given up. It is neither pinned, in flight nor dirty.
  void dropped(TileId tile, SpaceId space);
  /// The content is lost everywhere (its producer failed, or the device with the only replica died).
  void lost(TileId tile);
  /// The memory of a device is gone: its replicas become invalid, pins included. Tiles whose only
  /// replica it held are written to `out` as far as it reaches; returns how many there are.
  std::size_t space_lost(SpaceId space, std::span<TileId> out);

  /// Throws internal if an invariant is broken.
  void validate() const;

 private:
  struct Replica {
    State state = State::invalid;
    bool in_flight = false;
    std::uint16_t pins = 0;
  };
  Replica& at(TileId tile, SpaceId space) noexcept { return replicas_[tile * spaces_ + space]; }
  const Replica& at(TileId tile, SpaceId space) const noexcept {
    return replicas_[tile * spaces_ + space];
  }

  std::size_t spaces_;
  std::vector<Replica> replicas_;  ///< tile-major
  std::vector<TileId> free_;
  std::vector<bool> live_;
};

}  // namespace quadriga
