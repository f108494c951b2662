// SPDX-License-Identifier: BSD-3-Clause
// src/memory/transfers.h: copies between spaces: their streams, which of them are in flight, and
// the order of reads and writes of a replica.
//
// Pure: it is told what ended, and writes instructions. Used by one thread, the scheduler's.
//
// Invariants
//   1. A reader waits for its replica's `ready`, a writer for that and for all `reads`.
//   2. Both replicas of a copy in flight stay where they are: the source is pinned, the target is
//      in flight (directory.h).
//   3. What is written home was produced by a task that has ended well. (To a buffer on the host
//      may also go what a task has left that failed, which nobody reads.)
//   4. A copy of what another copy still has to bring fails if that one does.
//   5. The records of a stream are its copies in flight, in the order in which they will end.
//   6. Tiles of one copy, which lie side by side at home on the host, come with one event.
//   7. A tile that comes in slices has arrived with the last of them, which fails if one has. Who
//      forwards it meanwhile waits for each slice alone.
#pragma once

#include <quadriga/machine.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <utility>
#include <vector>

#include "device/instructions.h"
#include "device/ring.h"
#include "memory/copy_times.h"
#include "memory/link_loads.h"
#include "memory/link_tokens.h"
#include "memory/replicas.h"
#include "memory/slices.h"
#include "memory/space_resources.h"

namespace quadriga {

/// Why a copy was made.
enum class Reason : std::uint8_t { stage, prefetch, write_back, evict, final };

/// A copy of a tile from one space to another; a probe is one of no tile.
struct Transfer {
  TileId tile = no_tile;
  SpaceId from = 0;
  SpaceId to = 0;
  Reason reason = Reason::stage;
  std::exception_ptr error;  ///< It failed, or one that brought its source.
};

class Transfers {
 public:
  /// `spaces`: what each space has, by its number.
  Transfers(Instructions& instructions, const Machine& machine,
            std::span<const SpaceResources> spaces, Replicas& replicas);

  /// Queues a copy: both replicas have memory, and the source holds the newest content.
  /// Errors: internal if invariant 3 would be broken.
  /// `slices`: into how many the copy is cut; as many as bring the source, if that is on its way.
  void queue(TileId tile, SpaceId from, SpaceId to, Reason reason, std::size_t slices = 1);
  /// Queues one copy of tiles from their homes on the host, each above the next one of them.
  void queue_column(std::span<const TileId> tiles, SpaceId to, Reason reason);
  /// Queues an empty copy from a device, to see whether it is still there.
  void probe(SpaceId space);
  /// Takes a completion; false if it isn't of a copy. Writes what it brought to `out`; the
  /// directory knows then.
  /// Of a copy in slices only the last one brings something, and begins when the first did.
  bool ended(Completion& completion, std::vector<Transfer>& out);

  /// Makes a stream wait for all that a kernel with this access must follow.
  void wait_for(StreamId stream, TileId tile, SpaceId space, Access access);
  /// Tells that a kernel was queued: event `done`. The stream has waited for wait_for().
  void used(TileId tile, SpaceId space, Access access, Event done);
  /// The last queued writer of the tile has ended well.
  void confirm(TileId tile) { replicas_.confirm(tile); }
  /// The event of the replica's last queued writer: a kernel or a copy.
  Event ready(TileId tile, SpaceId space) const { return replicas_.at(tile, space).ready; }
  /// The events of the slices by which a replica is arriving, each of which is slice_of() it; empty
  /// if it is there, or comes as a whole.
  std::span<const Event> slices(TileId tile, SpaceId space) const;
  /// Into how many slices to cut a copy that another one forwards.
  std::size_t slices_by_way_of(TileId tile, SpaceId from, SpaceId via, SpaceId to) const;
  bool confirmed(TileId tile, SpaceId space) const { return !replicas_.unconfirmed(tile, space); }

  /// Where to copy from: the nearest, unless another is much sooner behind what crosses the links
  /// already; no_space if nowhere now. To the host and home, whose sources must be certain, the
  /// nearest always, so that the answer stays while copies are queued.
  SpaceId source_for(TileId tile, SpaceId to) const;
  /// A device by way of which a tile gets from the host to a device, or back, sooner than by the
  /// link between them, behind what is queued on both. No_space: none, as always where links are
  /// equal or a third space has the tile.
  SpaceId relay_for(TileId tile, SpaceId from, SpaceId to) const;
  /// Whose replica gets home to the host first: behind what is on its way there from each space;
  /// the owner's, unless another's is there and certain.
  SpaceId quickest_to_host(TileId tile, SpaceId owner) const;
  /// Whether a tile is on its way to a device by whose link it gets home to the host sooner than
  /// from all that have it, with idle links as well as behind what is queued on them.
  bool arrives_on_quicker_way(TileId tile, SpaceId owner) const;
  /// Seconds to fetch a tile to a space from its nearest replica; 0 if it is there.
  double fetch_seconds(TileId tile, SpaceId to) const;
  double seconds(SpaceId from, SpaceId to, std::size_t bytes) const noexcept {
    return times_.seconds(from, to, static_cast<double>(bytes));
  }
  /// Of a copy of a tile, which takes longer where the host's buffer lies on a far node. Without
  /// one: as for a near one, which it would get.
  double copy_seconds(TileId tile, SpaceId from, SpaceId to) const noexcept {
    return times_.seconds(from, to, static_cast<double>(replicas_.bytes(tile)),
                          node_of(tile, from, to));
  }
  bool joined(SpaceId from, SpaceId to) const noexcept { return times_.joined(from, to); }
  /// Whether copies from the host by runs of so many bytes are to become copies by longer ones, and
  /// up to how long ones: longer ones gain nothing.
  bool is_short_run(SpaceId to, std::size_t bytes) const noexcept {
    return bytes <= spaces_[to].short_run;
  }
  std::size_t long_run(SpaceId to) const noexcept { return spaces_[to].long_run; }

  /// Copies in flight.
  std::size_t in_flight() const noexcept { return in_flight_; }
  /// Whether a copy between two spaces that nobody waits for yet may be queued, see link_tokens.h.
  bool has_token(SpaceId from, SpaceId to) const noexcept {
    const Stream& stream = stream_for(from, to);
    const LinkTokens& tokens = to == host_space ? tokens_to_host_ : tokens_to_device;
    return tokens.are_left(stream.records.size(), seconds(from, to, loads_.bytes(from, to)));
  }
  /// Bytes of tiles that are being written back to make room.
  std::size_t leaving_bytes(SpaceId space) const noexcept { return spaces_[space].leaving_bytes; }
  /// A probe decides whether the device is still there.
  bool probing(SpaceId space) const noexcept { return spaces_[space].probes > 0; }

 private:
  struct Record {
    Transfer transfer;
    Event after;                 ///< The copy that brings its source, if that had not arrived.
    std::vector<TileId> others;  ///< That come with it.
    bool is_part = false;        ///< A slice that others follow.
    Nanoseconds begin = -1;      ///< Of the first slice, once that has ended.
  };
  struct Stream {
    StreamId id = 0;
    Ring<Record> records;
  };
  struct Space {
    Stream in;
    Stream out;
    std::vector<Stream> peers;  ///< By source space.
    int probes = 0;             ///< In flight.
    std::size_t leaving_bytes = 0;
    std::size_t short_run = 0;
    std::size_t long_run = 0;
    /// Devices whose links with the host are quicker than this one's, for some tiles at least.
    SpaceMask quicker_from_host = 0;
    SpaceMask quicker_to_host = 0;
  };
  void open(SpaceId space, const SpaceResources& resources, const Machine& machine);
  SpaceMask quicker(SpaceId from, SpaceId to) const noexcept;
  const Stream& stream_for(SpaceId from, SpaceId to) const noexcept;
  Stream& stream_for(SpaceId from, SpaceId to) noexcept {
    return const_cast<Stream&>(std::as_const(*this).stream_for(from, to));
  }
  /// Where the end on the host lies, if there is one.
  int node_of(TileId tile, SpaceId from, SpaceId to) const noexcept {
    const bool is_host = from == host_space || to == host_space;
    return is_host ? replicas_.at(tile, host_space).node : any_node;
  }
  Copy describe(TileId tile, SpaceId from, SpaceId to, const Slice& slice) const;
  Copy describe_column(std::span<const TileId> tiles, SpaceId to) const;
  Record& add_record(Stream& stream, Transfer transfer, Event after);
  void wait_for_both(StreamId stream, Event source, TileId tile, SpaceId to);
  static void part_ended(Stream& stream, const Completion& completion);
  void note(TileId tile, SpaceId from, SpaceId to, Event copied);
  void end(const Transfer& transfer, Event event);
  void expect_certain(TileId tile, SpaceId from, SpaceId to) const;
  void fail_forwarded(TileId tile, Event event, const std::exception_ptr& error);

  Instructions& instructions_;
  Replicas& replicas_;
  CopyTimes times_;
  LinkLoads loads_;
  double operation_seconds_;  ///< What the host takes for one.
  LinkTokens tokens_to_host_;
  std::vector<Space> spaces_;
  std::vector<Stream*> streams_;  ///< By stream id; null if not ours.
  std::size_t in_flight_ = 0;
};

}  // namespace quadriga
