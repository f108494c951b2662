// SPDX-License-Identifier: BSD-3-Clause
// src/memory/memory.h: keeps replicas of tiles in the devices' arenas: reserves room, orders
// copies, evicts.
//
// Pure but for the host's buffers: it is told what ended, and writes instructions. Used by one
// thread, the scheduler's.
//
// Invariants
//   1. A replica has a block (Place::block) exactly while the arena counts it, or on the host
//      spill_; home, the user's memory in whatever space, is no block: it is never counted,
//      evicted or given up. Where home is, the space has no block.
//   2. A block is given up only when the replica is unpinned and not in flight: nothing queued
//      touches it any more, so its next user has nothing to wait for.
//   3. `ready` is the event of the replica's last queued writer, `reads` those of the readers
//      queued since: a reader waits for the first, a writer for both. Replicas pinned by issued
//      tasks stay.
//   4. Home is overwritten by copies only when the content's producer has ended.
#pragma once

#include <quadriga/machine.h>

#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/instructions.h"
#include "memory/arena.h"
#include "memory/copy_times.h"
#include "memory/device_spaces.h"
#include "memory/directory.h"
#include "memory/eviction.h"
#include "memory/spill.h"

namespace quadriga {

/// Why a copy was made.
enum class Reason : std::uint8_t { stage, prefetch, write_back, evict, final };

/// What the memory asks and tells its user, the scheduler.
class MemoryListener {
 public:
  virtual ~MemoryListener() = default;
  /// Position in the plan of the tile's next use on a device's space; no_next_use if none is known.
  virtual std::uint64_t next_use(TileId tile, SpaceId space) const = 0;
  virtual void copy_ended(StreamId stream, Reason reason, TileId tile, SpaceId from, SpaceId to,
                          std::size_t bytes, const Completion& completion) = 0;
  virtual void evicted(TileId tile, SpaceId space) = 0;
  /// A tile's block in a device's arena is given up, for whatever reason.
  virtual void departed(TileId /*tile*/, SpaceId /*space*/) {}
  /// How an empty copy from the space ended, that probe() had asked for.
  virtual void probed(SpaceId space, const Completion& completion) = 0;
  /// Nothing queued touches a device's block any more.
  virtual void freed(SpaceId /*space*/, std::byte* /*block*/, std::size_t /*bytes*/) {}
};

struct TileInfo {
  std::byte* home = nullptr;    ///< The user's memory. Null: without a home.
  std::size_t width_bytes = 0;  ///< Of a column.
  std::size_t columns = 0;
  std::size_t pitch = 0;            ///< Between columns at home.
  SpaceId home_space = host_space;  ///< Where home is; a tile without one is written to the host.
};

struct Need {
  TileId tile = no_tile;
  Access access = Access::read;
};

enum class Outcome {
  done,
  no_room,    ///< Room must be made first: something that ends will make it.
  no_source,  ///< The content can't be copied before its producer, or another copy, has ended.
  unwritten,  ///< The content doesn't exist: no task has written it, or it was lost.
  no_buffer,  ///< The host has none for a tile; only what is in flight, if anything, may free one.
  home_lost,  ///< The device whose memory is home is gone.
};

struct MemoryOptions {
  std::size_t spill_bytes = SIZE_MAX;  ///< Most host memory for tiles without a home.
  std::string spill_file;              ///< Holds them instead, if not empty.
  const EvictionRule* rule = nullptr;  ///< Outlives the memory; null: its own FarthestUse.
};

class Memory {
 public:
  /// `spaces`: what each space has, by its number.
  Memory(Instructions& instructions, const Machine& machine, std::span<const SpaceResources> spaces,
         MemoryListener& listener, const MemoryOptions& options);

  TileId add(const TileInfo& info);
  /// Nothing of the tile is pinned or in flight.
  void remove(TileId tile);

  /// Reserves room for all needs at once, pins them in the space and queues the copies that are
  /// missing; or does nothing of it. Release by unpin().
  Outcome bring(std::span<const Need> needs, SpaceId space);
  /// Fetches one tile ahead of its need at `position` of the plan, in the place of `victims`, none
  /// of which is needed before. Not pinned.
  Outcome prefetch(TileId tile, SpaceId space, std::uint64_t position,
                   std::span<const TileId> victims);
  /// Tells that a kernel was queued: event `done`. The stream has waited for wait_for().
  void used(TileId tile, SpaceId space, Access access, Event done);
  /// Makes a stream wait for all that a kernel with this access must follow.
  void wait_for(StreamId stream, TileId tile, SpaceId space, Access access);
  void unpin(TileId tile, SpaceId space);
  /// The last queued writer of the tile has ended well.
  void confirm(TileId tile);
  /// The event of the replica's last queued writer: a kernel or a copy.
  Event ready(TileId tile, SpaceId space) const { return place(tile, space).ready; }
  bool confirmed(TileId tile, SpaceId space) const { return !place(tile, space).unconfirmed; }

  /// Queues a copy home if home is stale; its producer has ended. Between devices that no route
  /// joins it goes by way of a buffer on the host. Nothing is queued while a probe decides whether
  /// one of them is gone. False if there is no buffer.
  bool write_back(TileId tile, Reason reason);
  /// The same, and makes room on the host for it; false as long as that takes.
  bool send_home(TileId tile, Reason reason);
  /// Writes back what is dirty, unpinned and not needed again, while room is short.
  void clean_ahead(SpaceId space);
  /// Empties a space that nothing queued uses, for a request that fragments of it can't hold:
  /// writes back what is dirty, gives up the rest. Done once the space is empty.
  Outcome drain(SpaceId space);
  /// Nothing is pinned in a space or in flight to it or from it.
  bool quiet(SpaceId space) const noexcept;
  /// Gives up the replicas on devices of a tile that is home.
  void evict(TileId tile);
  /// The content is lost: its producer failed.
  void lost(TileId tile) { directory_.lost(tile); }
  /// Home still holds what was overwritten elsewhere and lost there.
  void restore_home(TileId tile) { directory_.restored(tile); }
  /// Nobody needs the content any more: its replicas go as soon as nothing queued uses them.
  void discard(TileId tile);
  /// Queues an empty copy from a device, to see whether it is still there.
  void probe(SpaceId space);
  /// A device is gone. Tiles whose only replica or whose home it held are written to `lost`.
  void space_lost(SpaceId space, std::vector<TileId>& lost);

  /// Takes a completion of a stream of ours; false if it isn't one.
  bool completed(const Completion& completion);

  /// Address and pitch of a replica that bring() pinned.
  std::byte* address(TileId tile, SpaceId space) const;
  std::size_t pitch(TileId tile, SpaceId space) const;
  /// Some replica is pinned or in flight.
  bool busy(TileId tile) const noexcept;
  const Directory& directory() const noexcept { return directory_; }
  std::size_t bytes(TileId tile) const noexcept {
    return infos_[tile].width_bytes * infos_[tile].columns;
  }
  bool stale_home(TileId tile) const noexcept { return directory_.owner(tile) != no_space; }
  /// Copies in flight.
  std::size_t in_flight() const noexcept { return in_flight_; }
  /// Those from the host to a space, and the seconds that they take if they have the link to
  /// themselves.
  std::size_t incoming_from_host(SpaceId space) const noexcept {
    return spaces_[space].in.records.size();
  }
  double host_seconds(SpaceId space) const noexcept {
    return times_.seconds(host_space, space, static_cast<double>(spaces_[space].incoming_bytes));
  }
  std::size_t capacity(SpaceId space) const noexcept;
  std::size_t free_bytes(SpaceId space) const noexcept {
    return spaces_[space].arena->capacity() - spaces_[space].arena->used();
  }
  /// Tiles with a block in a device's arena.
  std::span<const TileId> residents(SpaceId space) const noexcept {
    return spaces_[space].residents;
  }
  bool resident(TileId tile, SpaceId space) const { return has_block(tile, space); }
  /// The user's memory in this space is the tile's home: it takes none of the arena.
  bool at_home(TileId tile, SpaceId space) const {
    return infos_[tile].home && infos_[tile].home_space == space;
  }
  /// What one allocation of these bytes takes in an arena, or of the host's buffers.
  std::size_t rounded(std::size_t bytes, SpaceId space) const noexcept;
  std::size_t spilled_bytes() const noexcept { return spill_.used(); }
  std::size_t most_spilled_bytes() const noexcept { return spill_.most(); }
  const Spill& spill() const noexcept { return spill_; }
  /// Most of a device's memory in use at once so far.
  std::size_t most_bytes(SpaceId space) const noexcept { return spaces_[space].most_bytes; }
  /// Seconds to bring a tile to a space from its nearest replica; 0 if it is there.
  double fetch_seconds(TileId tile, SpaceId to) const;
  void validate() const;

 private:
  struct Place {
    std::byte* block = nullptr;
    Event ready;
    std::vector<Event> reads;
    std::uint64_t last_use = 0;
    bool unconfirmed = false;  ///< The last queued writer has not ended.
  };
  struct CopyRecord {
    std::uint64_t ticket = 0;
    TileId tile = no_tile;
    SpaceId from = 0;
    SpaceId to = 0;
    Reason reason = Reason::stage;
    Event after;               ///< The copy that brings its source, if that had not arrived.
    std::exception_ptr error;  ///< That copy failed.
  };
  struct CopyStream {
    StreamId id = 0;
    std::deque<CopyRecord> records;
  };
  struct Space {
    DeviceId device = no_device;
    std::byte* base = nullptr;
    std::optional<Arena> arena;
    /// Tiles with a block here, or on the host a buffer; position in resident_index_.
    std::vector<TileId> residents;
    CopyStream in;
    CopyStream out;
    std::vector<CopyStream> peers;   ///< By source space.
    int probes = 0;                  ///< In flight.
    std::size_t most_bytes = 0;      ///< Most that the arena has handed out at once.
    std::size_t incoming_bytes = 0;  ///< From the host.
    std::size_t leaving_bytes = 0;   ///< Of tiles that are being written back to make room.
  };

  Place& place(TileId tile, SpaceId space) { return places_[tile * spaces_.size() + space]; }
  const Place& place(TileId tile, SpaceId space) const {
    return places_[tile * spaces_.size() + space];
  }
  std::uint32_t& resident_index(TileId tile, SpaceId space) {
    return resident_index_[tile * spaces_.size() + space];
  }
  void open_space(SpaceId space, const SpaceResources& resources);
  void note_resident(TileId tile, SpaceId space);
  bool has_block(TileId tile, SpaceId space) const { return place(tile, space).block != nullptr; }
  bool has_memory(TileId tile, SpaceId space) const {
    return has_block(tile, space) || at_home(tile, space);
  }
  /// Where to copy from; no_space if nowhere now.
  SpaceId source_for(TileId tile, SpaceId to) const;
  /// The same, and whether it may be copied now. No_space: by way of the host, which has no buffer
  /// to spare; where it has one, that copy is queued.
  Outcome find_source(TileId tile, SpaceId to, SpaceId& from);
  Outcome reserve(std::span<const Need> needs, SpaceId space);
  Outcome fetch(std::span<const Need> needs, SpaceId space);
  bool allocate(TileId tile, SpaceId space);
  void give_up(TileId tile, SpaceId space);
  Outcome make_room(std::size_t bytes, SpaceId space);
  std::span<const TileId> victims_for(std::size_t bytes, SpaceId space);
  Outcome let_leave(std::span<const TileId> victims, SpaceId space);
  bool leaves_before(TileId tile, SpaceId space, std::uint64_t position);
  void collect_candidates(SpaceId space);
  /// A replica as one of them; if it is dirty it goes to the space `to`.
  Candidate candidate(TileId tile, SpaceId space, SpaceId to);
  void queue_copy(TileId tile, SpaceId from, SpaceId to, Reason reason);
  CopyStream& stream_for(SpaceId from, SpaceId to);
  /// The host's memory for a tile, at home or a buffer; false if there is none to spare.
  bool has_host_memory(TileId tile);
  /// The same for all of these tiles at once, or for none; room is made for them.
  bool take_host_memory(std::span<const Need> needs);
  bool make_host_room(std::size_t bytes, std::span<const Need> needs);
  void collect_on_host(std::span<const Need> needs);
  /// It goes home to the host, or by way of it.
  bool needs_host(TileId tile, SpaceId owner) const {
    const SpaceId home = directory_.home(tile);
    return home == host_space || !times_.joined(owner, home);
  }
  void drop_if_unused(TileId tile, SpaceId space);
  /// The same for such a buffer that has passed its content on: it is kept for others while there
  /// is plenty.
  void drop_if_passed(TileId tile);
  bool drop_if_held(TileId tile, SpaceId space);
  bool buffers_are_scarce() const noexcept { return spill_.used() > spill_.limit() / 2; }
  CopyStream* find_stream(StreamId stream);
  void fail_forwarded(TileId tile, Event event, const std::exception_ptr& error);

  Instructions& instructions_;
  const Machine& machine_;
  CopyTimes times_;
  MemoryListener& listener_;
  Directory directory_;
  FarthestUse farthest_use_;
  const EvictionRule& rule_;  ///< What was given, or farthest_use_.
  Spill spill_;
  std::vector<Space> spaces_;
  std::vector<TileInfo> infos_;
  std::vector<Place> places_;  ///< tile-major
  std::vector<std::uint32_t> resident_index_;
  std::vector<CopyStream*> streams_;  ///< By stream id; null if not ours.
  std::size_t in_flight_ = 0;
  std::uint64_t clock_ = 0;  ///< Counts uses, for last_use.
  std::vector<Candidate> candidates_;
  std::vector<TileId> victims_;
};

}  // namespace quadriga
