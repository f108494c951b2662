// SPDX-License-Identifier: BSD-3-Clause
// src/memory/directory.h: which replicas of each tile exist, in which state, and which is newest.
//
// A tile's home is the user's memory, or where the tile is written back to: in one space, the
// host's or a device's, which never changes.
//
// Pure: knows no thread, device or clock. Its states follow the order of *issue*: a replica whose
// copy or kernel is queued counts as valid, since whoever uses it waits for its event; in_flight()
// tells which copies have not ended yet. Whether a kernel has ended is known to its task.
//
// States (MOESI), for the replicas of one tile:
//   modified   the only valid replica, and home is stale: write back before it goes.
//   owned      newest, home is stale, other valid replicas exist (those are shared).
//   exclusive  the only valid replica, and home is not stale (so it is home).
//   shared     valid beside others; home is valid, or some other replica is owned.
//   invalid    no content, or an old one.
// Invariants (validate()):
//   1. At most one replica of a tile is modified, owned or exclusive.
//   2. modified and exclusive exclude any other valid replica.
//   3. If the tile was written and home is invalid, exactly one replica is modified or owned; if
//      home is valid, none is. The replica at home is never modified or owned.
//   4. At most one copy in flight to a replica brings its present content, the youngest; older
//      ones were overtaken by a write or lost(), and how they end no longer matters. The source of
//      each is pinned until the copy ends, even if a later write made it invalid.
//   5. A replica that is pinned or in flight isn't dropped.
//   6. What is at home in a lost space is lost with it, whatever replicas other spaces hold.
#pragma once

#include <quadriga/types.h>

#include <span>
#include <string_view>
#include <vector>

namespace quadriga {

using TileId = std::uint32_t;
inline constexpr TileId no_tile = 0xffffffff;

enum class State : std::uint8_t { invalid, shared, exclusive, owned, modified };

std::string_view name(State state) noexcept;

class Directory {
 public:
  static constexpr int max_spaces = 64;

  /// `spaces` counts the host's (0) and each device's; from 1 to max_spaces.
  explicit Directory(int spaces);

  int spaces() const noexcept { return static_cast<int>(spaces_); }

  /// A tile whose content is at home (exclusive there), or that no one has written yet, as when the
  /// space of its home is lost.
  TileId add(bool home_valid, SpaceId home = host_space);
  /// Forgets a tile; nothing of it is pinned or in flight. Its id may be given out again.
  void remove(TileId tile);

  SpaceId home(TileId tile) const noexcept { return tiles_[tile].home; }
  /// The memory of its device was lost.
  bool gone(SpaceId space) const noexcept { return gone_ >> space & 1; }
  /// The space of its home is gone: nothing can be written back any more.
  bool home_lost(TileId tile) const noexcept { return gone(tiles_[tile].home); }
  State state(TileId tile, SpaceId space) const noexcept;
  bool valid(TileId tile, SpaceId space) const noexcept { return tiles_[tile].valid >> space & 1; }
  /// Valid, and its content isn't still to come by a copy in flight.
  bool arrived(TileId tile, SpaceId space) const noexcept {
    return (tiles_[tile].valid & ~tiles_[tile].arriving) >> space & 1;
  }
  /// A copy to this replica is queued and has not ended, of its present content or an old one.
  bool in_flight(TileId tile, SpaceId space) const noexcept {
    return at(tile, space).in_flight > 0;
  }
  int pins(TileId tile, SpaceId space) const noexcept { return at(tile, space).pins; }
  /// Some replica is valid.
  bool written(TileId tile) const noexcept { return tiles_[tile].valid != 0; }
  /// Dropping it would lose the newest content: no other replica that has arrived holds it.
  bool dirty(TileId tile, SpaceId space) const noexcept;
  /// The replica to write the newest content back from; no_space if home is valid or nothing is.
  SpaceId owner(TileId tile) const noexcept { return tiles_[tile].owner; }

  /// Calls visit(tile) for each tile that may have got an owner since this was called last, once.
  template <class Visit>
  void take_owned(Visit&& visit) {
    for (const TileId tile : news_) {
      tiles_[tile].owner_is_news = false;
      if (tiles_[tile].live) visit(tile);
    }
    news_.clear();
  }

  /// Valid replicas other than `to`, for the caller to choose a source by link: those that have
  /// arrived first, then those in flight. Returns how many were written.
  std::size_t sources(TileId tile, SpaceId to, std::span<SpaceId> out) const noexcept;

  // Events, each of constant cost. Each checks its precondition, throws invalid_argument naming the
  // event and the tile, and leaves the state as it was if it fails.

  /// A copy was queued: `to`, until now invalid, becomes valid and in flight, `from` is pinned. A
  /// copy home cleans the tile (write-back): modified and owned become shared.
  void copy_issued(TileId tile, SpaceId from, SpaceId to);
  /// The oldest copy in flight to `to` ended; `from` is unpinned. Failed: `to` becomes invalid
  /// unless it was written meanwhile, and with it what is still to arrive from there, however those
  /// copies end. If it was a write-back, `from` is owned or modified again if it is still valid, or
  /// else another valid replica. If none is left the content is lost: written() says so.
  void copy_ended(TileId tile, SpaceId from, SpaceId to, bool ok);
  /// A kernel that writes this replica was queued: it alone stays valid (modified, or exclusive at
  /// home). Others may still be pinned by readers of the old content, which the writer waits for.
  void write_issued(TileId tile, SpaceId space);
  /// Someone who uses the replica, or its memory, was queued, or ended.
  void pin(TileId tile, SpaceId space);
  void unpin(TileId tile, SpaceId space);
  /// The memory of a replica was given up. It is neither pinned, in flight nor dirty. If it was
  /// owned, or home, another replica that has arrived is owned (or modified) from now on.
  void dropped(TileId tile, SpaceId space);
  /// The content is lost everywhere: its producer failed, or the device with the only replica died.
  void lost(TileId tile);
  /// What had overwritten the content is lost, and home, which isn't, still holds it: valid there.
  void restored(TileId tile);
  /// The memory of a device is gone: its replicas become invalid, pins included, and stay so.
  /// Copies from and to it that are in flight end as usual, unpin() there does nothing. Tiles whose
  /// content is lost, since it held their home or only replica, are written to `out` as far as it
  /// reaches; returns how many there are.
  std::size_t space_lost(SpaceId space, std::span<TileId> out);

  /// Throws internal if an invariant is broken.
  void validate() const;

 private:
  using Mask = std::uint64_t;  ///< A bit a space.
  struct Tile {
    Mask valid = 0;
    Mask arriving = 0;  ///< Valid, by a copy in flight.
    SpaceId owner = no_space;
    SpaceId home = host_space;
    bool live = false;
    bool owner_is_news = false;  ///< It is in `news_`.
    TileId next_free = no_tile;  ///< Of one that isn't live.
  };
  struct Replica {
    std::uint16_t pins = 0;
    std::uint16_t in_flight = 0;  ///< Copies to it, the overtaken ones included.
    SpaceId source = no_space;    ///< Of the youngest.
  };
  Replica& at(TileId tile, SpaceId space) noexcept { return replicas_[tile * spaces_ + space]; }
  const Replica& at(TileId tile, SpaceId space) const noexcept {
    return replicas_[tile * spaces_ + space];
  }
  void expect(bool condition, std::string_view event, TileId tile, std::string_view expected) const;
  void expect_usable(std::string_view event, TileId tile, SpaceId space) const;
  void set_owner(TileId tile, SpaceId space);
  void invalidate(TileId tile, SpaceId space);
  void arrival_failed(TileId tile, SpaceId space);
  void validate(TileId tile) const;

  std::size_t spaces_;
  Mask gone_ = 0;  ///< Spaces that were lost.
  std::vector<Tile> tiles_;
  std::vector<Replica> replicas_;  ///< tile-major
  std::vector<TileId> news_;       ///< Tiles that may have got an owner.
  TileId first_free_ = no_tile;
};

}  // namespace quadriga
