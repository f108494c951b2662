// SPDX-License-Identifier: BSD-3-Clause
// src/memory/replicas.h: the directory, and of each replica its memory and the events that guard
// it.
//
// Pure: knows no thread, device or clock.
//
// Invariants
//   1. Home, the user's memory in whatever space, is no block: where home is, the space has none.
//   2. Tiles with a home are in `by_home_` by its address; where several have the same, one is.
//   3. `ready` is the event of the replica's last queued writer, `reads` those of the readers
//      queued since.
//   4. Which replicas have a block, and which are unconfirmed, a tile tells at one place: most
//      questions are about one or two of its replicas, which lie far apart.
#pragma once

#include <quadriga/machine.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "device/backend.h"
#include "device/pitch.h"
#include "memory/directory.h"

namespace quadriga {

struct TileInfo {
  std::byte* home = nullptr;    ///< The user's memory. Null: without a home.
  std::size_t width_bytes = 0;  ///< Of a column.
  std::size_t columns = 0;
  std::size_t pitch = 0;            ///< Between columns at home.
  SpaceId home_space = host_space;  ///< Where home is; a tile without one is written to the host.
};

/// Spaces, a bit each.
using SpaceMask = std::uint64_t;

/// Calls visit(space) for each of them, the smallest first.
template <class Visit>
void for_each_space(SpaceMask spaces, Visit&& visit) {
  for (; spaces != 0; spaces &= spaces - 1) visit(static_cast<SpaceId>(std::countr_zero(spaces)));
}

/// A tile in one space.
struct Replica {
  std::byte* block = nullptr;  ///< Of the space's pool; see Replicas::give_block().
  Event ready;
  std::vector<Event> reads;
  std::vector<Event> slices;  ///< Of the copy that brings it, if in several; the last is `ready`.
  std::uint64_t last_use = 0;
  int node = any_node;  ///< Of the host, where its block lies.
};

class Replicas {
 public:
  explicit Replicas(const Machine& machine)
      : directory_(machine.spaces()),
        spaces_(static_cast<SpaceId>(machine.spaces())),
        pitch_alignments_(spaces_, 1) {
    // Copies between the host's buffers and a device's blocks are one run if both are padded alike.
    for (const Device& device : machine.devices)
      for (const SpaceId space : {host_space, device.space})
        pitch_alignments_[space] = std::max(pitch_alignments_[space], device.pitch_alignment);
  }

  TileId add(const TileInfo& info) {
    // There is nothing to write in an empty tile.
    const bool is_empty = info.width_bytes * info.columns == 0;
    const TileId tile = directory_.add(info.home != nullptr || is_empty, info.home_space);
    if (tile >= infos_.size()) {
      infos_.resize(tile + 1);
      states_.resize(tile + 1);
      replicas_.resize((tile + std::size_t{1}) * spaces_);
    }
    infos_[tile] = info;
    states_[tile] = {};
    if (info.home) by_home_.emplace(info.home, tile);
    for (SpaceId space = 0; space < spaces_; ++space) clear(tile, space);
    return tile;
  }

  void remove(TileId tile) {
    directory_.remove(tile);
    const auto found = by_home_.find(infos_[tile].home);
    if (found != by_home_.end() && found->second == tile) by_home_.erase(found);
  }
  /// The tile whose columns go on at home where those of this one end; no_tile if there is none.
  TileId below(TileId tile) const {
    const TileInfo& info = infos_[tile];
    const auto found = by_home_.find(info.home + info.width_bytes);
    if (found == by_home_.end()) return no_tile;
    const TileInfo& other = infos_[found->second];
    const bool is_alike = other.home_space == info.home_space && other.pitch == info.pitch &&
                          other.columns == info.columns && info.columns > 1;
    return is_alike ? found->second : no_tile;
  }

  /// Brings what is known of a tile and its replica into the caches.
  void fetch(TileId tile, SpaceId space) const noexcept {
    __builtin_prefetch(&infos_[tile]);
    __builtin_prefetch(&states_[tile], 1);
    const Replica& replica = at(tile, space);
    __builtin_prefetch(&replica, 1);
    __builtin_prefetch(&replica.last_use, 1);
  }

  Directory& directory() noexcept { return directory_; }
  const Directory& directory() const noexcept { return directory_; }
  SpaceId spaces() const noexcept { return spaces_; }
  /// One more than the largest number of a tile so far.
  std::size_t tiles() const noexcept { return infos_.size(); }
  const TileInfo& info(TileId tile) const { return infos_[tile]; }
  /// Of its content, which is what crosses links.
  std::size_t bytes(TileId tile) const noexcept {
    return infos_[tile].width_bytes * infos_[tile].columns;
  }
  /// Of a block that holds it, at least 1: columns are padded as the space wants them.
  std::size_t block_bytes(TileId tile, SpaceId space) const noexcept {
    return block_bytes(infos_[tile].width_bytes, infos_[tile].columns, space);
  }
  std::size_t block_bytes(std::size_t width_bytes, std::size_t columns,
                          SpaceId space) const noexcept {
    const std::size_t pitch = padded_pitch(width_bytes, columns, pitch_alignments_[space]);
    return std::max<std::size_t>(pitch * columns, 1);
  }
  Replica& at(TileId tile, SpaceId space) { return replicas_[tile * std::size_t{spaces_} + space]; }
  const Replica& at(TileId tile, SpaceId space) const {
    return replicas_[tile * std::size_t{spaces_} + space];
  }
  /// It has this block of its space's pool from now on, and nothing else.
  void give_block(TileId tile, SpaceId space, std::byte* block, int node) {
    clear(tile, space);
    at(tile, space).block = block;
    at(tile, space).node = node;
    states_[tile].blocks |= bit(space);
  }
  void take_block(TileId tile, SpaceId space) {
    at(tile, space).block = nullptr;
    at(tile, space).node = any_node;
    states_[tile].blocks &= ~bit(space);
  }
  /// Forgets what is known of a replica, its block and its events, whose memory it keeps.
  void clear(TileId tile, SpaceId space) {
    Replica& replica = at(tile, space);
    replica.block = nullptr;
    replica.ready = {};
    replica.reads.clear();
    replica.slices.clear();
    replica.last_use = 0;
    replica.node = any_node;
    states_[tile].blocks &= ~bit(space);
    states_[tile].unconfirmed &= ~bit(space);
  }
  /// Counts as the most recent use of a replica.
  void touch(TileId tile, SpaceId space) { at(tile, space).last_use = ++uses_; }

  /// The user's memory in this space is the tile's home: it takes none of the space's pool.
  bool at_home(TileId tile, SpaceId space) const {
    return infos_[tile].home && infos_[tile].home_space == space;
  }
  bool has_block(TileId tile, SpaceId space) const { return states_[tile].blocks & bit(space); }
  SpaceMask blocks(TileId tile) const noexcept { return states_[tile].blocks; }
  bool has_memory(TileId tile, SpaceId space) const {
    return has_block(tile, space) || at_home(tile, space);
  }
  std::byte* address(TileId tile, SpaceId space) const {
    return at_home(tile, space) ? infos_[tile].home : at(tile, space).block;
  }
  std::size_t pitch(TileId tile, SpaceId space) const {
    const TileInfo& info = infos_[tile];
    if (at_home(tile, space)) return info.pitch;
    return padded_pitch(info.width_bytes, info.columns, pitch_alignments_[space]);
  }

  /// The replica's last queued writer has not ended.
  bool unconfirmed(TileId tile, SpaceId space) const {
    return states_[tile].unconfirmed & bit(space);
  }
  void set_unconfirmed(TileId tile, SpaceId space, bool unconfirmed) {
    SpaceMask& all = states_[tile].unconfirmed;
    all = unconfirmed ? all | bit(space) : all & ~bit(space);
  }
  /// The last queued writer of the tile has ended well.
  void confirm(TileId tile) { states_[tile].unconfirmed = 0; }

  /// Neither pinned nor in flight: nothing queued uses it.
  bool idle(TileId tile, SpaceId space) const noexcept {
    return directory_.pins(tile, space) == 0 && !directory_.in_flight(tile, space);
  }
  /// Some replica is pinned or in flight.
  bool busy(TileId tile) const noexcept {
    for (SpaceId space = 0; space < spaces_; ++space)
      if (!idle(tile, space)) return true;
    return false;
  }

 private:
  struct TileState {
    SpaceMask blocks = 0;
    SpaceMask unconfirmed = 0;
  };
  static constexpr SpaceMask bit(SpaceId space) noexcept { return SpaceMask{1} << space; }

  Directory directory_;
  SpaceId spaces_;
  std::vector<std::size_t> pitch_alignments_;  ///< By space.
  std::vector<TileInfo> infos_;
  std::vector<TileState> states_;  ///< By tile.
  std::unordered_map<const std::byte*, TileId> by_home_;
  std::vector<Replica> replicas_;  ///< tile-major
  std::uint64_t uses_ = 0;         ///< Counts uses, for last_use.
};

}  // namespace quadriga
