// SPDX-License-Identifier: BSD-3-Clause
// src/message/communicator.h: ranks that exchange messages, one to one and all together; public
// communicators and Python's are made of it.
//
// Invariants
//   1. Each communicator has two contexts of its own: one for messages, the next for collectives.
//   2. A collective begins by an agreement of all ranks on what it is; where they differ, or one
//      can't take part, all raise before anything moves.
//   3. Each collective has a tag of its own, so that what a failed one left is never taken.
//   4. A rank that gives up within a collective tells the others, who raise too; no collective of
//      that communicator works afterwards.
//   5. Collectives of a communicator are called by one thread at a time, in the same order on all
//      ranks.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "message/collective_times.h"
#include "message/endpoint.h"
#include "message/exchange_transfers.h"
#include "message/nccl/choice.h"
#include "message/pack/reduce.h"
#include "message/schedules/step_cache.h"

namespace quadriga::message {

class NcclGroups;

/// A message of an exchange that is set up once.
struct PlannedMessage {
  MessageBuffer place;
  int peer = 0;
  int tag = 0;
  /// What this stream of the place's device holds at a start comes first.
  std::optional<std::uintptr_t> stream{};
};

/// Elements for or from a rank.
struct RankPart {
  int peer = 0;
  MessageBuffer place;
};

class CommunicatorCore {
 public:
  /// All ranks of an endpoint's world.
  explicit CommunicatorCore(std::shared_ptr<Endpoint> endpoint);

  int rank() const noexcept { return group_->rank; }
  int size() const noexcept { return group_->size(); }
  Endpoint& endpoint() const noexcept { return *endpoint_; }
  const std::shared_ptr<Endpoint>& shared_endpoint() const noexcept { return endpoint_; }
  const Group& group() const noexcept { return *group_; }
  /// The same on all its ranks, and no other communicator's.
  std::uint64_t context() const noexcept { return context_; }
  /// The same ranks with contexts of their own: all that give the same `number` mean each other.
  /// Nobody is asked. Its collectives aren't NCCL's, whose groups take memory of devices.
  CommunicatorCore apart(std::uint64_t number) const;
  /// This rank takes no part in later collectives: they raise on all ranks, with the reason.
  void give_up(const std::string& why) const noexcept;

  /// Ranks are this communicator's; errors as Endpoint's, and invalid_argument for ranks and tags.
  /// With an `order` what its stream held comes first, and what it gets after a receive's end, or
  /// its wait's, comes later: these end once the receive is queued on the device.
  /// `keep` is let go once nothing uses the memory, which may be later than a failed call's end
  /// (Endpoint::patience_while_held).
  void send(const MessageBuffer& place, int destination, int tag, const Patience& patience,
            std::shared_ptr<StreamOrder> order = {}, std::shared_ptr<void> keep = {}) const;
  MessageStatus receive(const MessageBuffer& place, int source, int tag, const Patience& patience,
                        std::shared_ptr<StreamOrder> order = {}) const;
  TransferPtr start_send(const MessageBuffer& place, int destination, int tag,
                         std::shared_ptr<void> keep = {},
                         std::shared_ptr<StreamOrder> order = {}) const;
  TransferPtr start_receive(const MessageBuffer& place, int source, int tag,
                            std::shared_ptr<void> keep = {},
                            std::shared_ptr<StreamOrder> order = {}) const;
  /// Sends and receives at once, `patience` for both together.
  MessageStatus send_receive(const MessageBuffer& from, int destination, int send_tag,
                             const MessageBuffer& into, int source, int receive_tag,
                             Patience patience, std::shared_ptr<StreamOrder> send_order = {},
                             std::shared_ptr<StreamOrder> receive_order = {},
                             std::shared_ptr<void> send_keep = {}) const;
  std::optional<MessageStatus> probe(int source, int tag,
                                     const std::optional<Patience>& patience) const;

  /// The paths of a message to a rank, of which one is chosen, and the seconds that each takes;
  /// `into` is memory of this process like the receive's. Nothing is sent.
  std::vector<PredictedPath> predict(const MessageBuffer& from, int destination,
                                     const MessageBuffer& into) const;

  /// Sends and receives that are started together, again and again.
  ExchangeTransfers plan(const std::vector<PlannedMessage>& sends,
                         const std::vector<PlannedMessage>& receives,
                         std::shared_ptr<void> keep = {}) const;

  /// Waits for the stream of an array, if there is one, before a collective. A rank that doesn't
  /// wait any longer gives up, of which the others are told; so they are of a lost device.
  /// Errors: deadline; device_lost; those of the collective.
  void await_stream(const std::shared_ptr<StreamOrder>& order, CallKind kind,
                    const Patience& patience);
  /// Stands for a collective in which this rank can't take part: it raises on all ranks.
  void refuse(CallKind kind, const std::string& why, const Patience& patience);
  void barrier(const Patience& patience);
  void broadcast(const MessageBuffer& place, int root, const Patience& patience);
  /// What the collectives along trees below use instead of what is chosen; the same on all ranks.
  /// Options are ours, whoever carries out others. Errors: invalid_argument for nonsense.
  void force(const TreeOptions& options, CollectiveBy by = CollectiveBy::chosen);
  CollectiveBy by() const noexcept { return by_; }
  /// Groups of these ranks that NCCL has; null: never, as of what is apart().
  const std::shared_ptr<NcclGroups>& nccl() const noexcept { return nccl_; }
  /// Whether the times of collectives are noted from now on: of each its last one's.
  void note_times(bool on) { times_ = on ? std::make_shared<CollectiveTimes>() : nullptr; }
  /// Of the last one; null while they aren't noted.
  const CollectiveTimes* times() const noexcept { return times_.get(); }
  /// `into` counts on the root only. Elements of one type. The order of operations depends on the
  /// number of ranks, the root, the size, whether all ranks' data are in the host's memory and, if
  /// all are in that of devices, on their DevicePort::peer_rate() and message_cost(); with
  /// `reproducible` on the number of ranks and the root alone.
  void reduce(const MessageBuffer& from, const MessageBuffer& into, ReduceOperation operation,
              int root, const Patience& patience, bool reproducible = false);
  void all_reduce(const MessageBuffer& from, const MessageBuffer& into, ReduceOperation operation,
                  const Patience& patience, bool reproducible = false);
  /// Rank i gets counts[i] elements of the result. Errors: also counts that don't sum up to `from`.
  void reduce_scatter(const MessageBuffer& from, const MessageBuffer& into,
                      std::span<const std::int64_t> counts, ReduceOperation operation,
                      const Patience& patience, bool reproducible = false);
  /// The root's `into` holds each rank's part in order.
  void gather(const MessageBuffer& from, const MessageBuffer& into, int root,
              const Patience& patience);
  void all_gather(const MessageBuffer& from, const MessageBuffer& into, const Patience& patience);
  /// into[i] gets what rank i gives: any sizes and places, which all ranks agree on.
  void all_gather_parts(const MessageBuffer& from, std::span<const MessageBuffer> into,
                        const Patience& patience);
  void scatter(const MessageBuffer& from, const MessageBuffer& into, int root,
               const Patience& patience);
  /// Both hold a part for each rank, in order.
  void all_to_all(const MessageBuffer& from, const MessageBuffer& into, const Patience& patience);
  /// Parts of any sizes and places for and from any ranks: gatherv and scatterv (root is -1 for the
  /// rest), alltoallv, alltoallw, neighbour exchange. Of several parts for one rank the first goes
  /// to the first that is listed there. Both sides' elements must agree, or all ranks raise.
  void exchange(CallKind kind, int root, std::span<const RankPart> sends,
                std::span<const RankPart> receives, const Patience& patience);
  /// Ranks of the same color form one, ordered by key, then rank; a negative color: none.
  std::optional<CommunicatorCore> split(int color, int key, const Patience& patience);
  /// Those that are neither lost nor gone, in their order: the same on all that call it, each as
  /// often, whatever they know at that time. If any are lost or gone, all transfers of this
  /// communicator end, now and later, on all ranks: PeerLost. Waits for nobody.
  /// Errors: peer_lost if the others take this rank for lost; unavailable (agreement.h).
  CommunicatorCore shrink();

 private:
  friend class Collective;
  CommunicatorCore(std::shared_ptr<Endpoint> endpoint, std::shared_ptr<const Group> group,
                   std::uint64_t context);
  Posting message(const MessageBuffer& place, int peer, int tag, CallKind operation) const;

  std::shared_ptr<Endpoint> endpoint_;
  std::shared_ptr<const Group> group_;
  std::uint64_t context_ = 0;
  int collectives_ = 0;
  TreeOptions forced_;
  CollectiveBy by_ = CollectiveBy::chosen;
  std::shared_ptr<NcclGroups> nccl_;
  StepCache known_;
  std::shared_ptr<CollectiveTimes> times_;  ///< Null: nobody asks.
  std::uint64_t shrinks_ = 0;
};

}  // namespace quadriga::message
