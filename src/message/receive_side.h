// SPDX-License-Identifier: BSD-3-Clause
// src/message/receive_side.h: the messages that arrive at a rank, and the receives that wait there.
//
// Invariants
//   1. All functions are called with the endpoint's lock.
//   2. A rank's messages are taken from its ring in order, each into the receive that accepts it,
//      or aside. Beyond most_unexpected bytes aside, the ring is read on only while a receive waits
//      that may accept what is behind; the sender runs out of credit then.
//   3. Piece rings are always read: what is in them has its receive, or is dropped. So large
//      messages move on however many small ones nobody receives.
//   4. What another rank wrote is copied, then checked, then used; what is wrong ends that rank's
//      link (PeerLink::reason), not this process.
//   5. A large message is claimed before a receive is taken for it: one that was withdrawn takes
//      none.
//   6. A receive that isn't done is in exactly one of matching_, reading_, piecing_ and moving_: in
//      the last one as long as only devices are waited for.
//   7. A rank that is gone is read until its rings are empty: only then do its receives in piecing_
//      end.
//   8. The claim of a message that a device reads is changed to `done` after the device has, and
//      before the receive ends.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "message/envelope.h"
#include "message/matching.h"
#include "message/peer_link.h"
#include "message/transfer.h"

namespace quadriga::message {

/// Packed bytes of messages from one rank that nobody has asked for yet.
inline constexpr std::size_t most_unexpected = std::size_t{4} << 20;

/// Contexts that a rank may abort: they are kept as long as the world lives.
inline constexpr std::size_t most_aborts = 10'000;

class ReceiveSide {
 public:
  /// `claims` is how many each sender has.
  ReceiveSide(int rank, std::uint32_t claims, PeerLinks& links)
      : rank_(rank), claims_(claims), links_(links) {}

  void start(TransferPtr transfer);
  /// What devices do for this rank alone: a transfer with its `copier`.
  void start_move(TransferPtr transfer);
  /// Makes the receive's stream wait for its end, which is queued. Nothing if it can't.
  void lead(MessageTransfer& transfer);
  /// A message of this rank to itself. Nobody else will take it: it never waits for its receive.
  void send_to_self(const MessageBuffer& place, int tag, std::uint64_t context);
  /// The oldest message that a receive would take after those of `before`, which haven't started.
  std::optional<MessageStatus> find(const Address& wanted, std::span<const Address> before,
                                    const Group& group) const;
  /// Between them a probe waits for messages of a source, or any.
  void begin_probe(int source) { probed_.push_back(source); }
  void end_probe(int source);
  /// Takes what a rank has sent; whether anything moved. `all` of it: the rank is gone.
  bool advance(int peer, bool all = false);
  /// Goes on reading large messages; whether anything moved.
  bool advance_reads();
  void cancel(const TransferPtr& transfer);
  /// Ends receives that a gone rank was to serve: `waits_for` says of those that aren't matched.
  void drop(int peer, const std::function<bool(const MessageTransfer&)>& waits_for,
            const std::function<std::exception_ptr(const MessageTransfer&)>& error_of);
  /// Ends all receives of which `which` holds; what is being read stays with its sender.
  void drop_if(const std::function<bool(const MessageTransfer&)>& which,
               const std::function<std::exception_ptr(const MessageTransfer&)>& error_of);
  /// Why a context was aborted; null if it wasn't.
  const ContextAbort* abort_of(std::uint64_t context) const noexcept;
  void note_abort(const ContextAbort& why) { aborts_.emplace(why.context, why); }
  /// Contexts that other ranks aborted since it was asked last.
  std::vector<std::uint64_t> take_aborts() noexcept { return std::exchange(new_aborts_, {}); }
  /// Whether receives wait whose messages may be large, or are being received.
  bool has_large() const noexcept {
    return large_ > 0 || !reading_.empty() || !piecing_.empty() || !moving_.empty();
  }
  /// Whether devices copy what arrives.
  bool has_moves() const noexcept;
  /// Whether a stream waits for a receive in its caller's place.
  bool has_led() const noexcept;
  /// What ended transfers kept: destroyed by who asks, without the lock.
  std::vector<std::shared_ptr<void>> take_kept() noexcept { return std::exchange(let_go_, {}); }
  bool take_ended() noexcept { return std::exchange(ended_, false); }
  /// Whether a rank sent what it mustn't since it was asked last.
  bool take_fault() noexcept { return std::exchange(fault_, false); }

 private:
  struct DeviceSource {
    DeviceOffer offer;
    Layout layout;
  };
  struct Arrival {
    Envelope envelope;
    std::shared_ptr<DeviceSource> device{};  ///< If it lies in a device's memory.
    Offer offer;                             ///< If it is one;
    std::unique_ptr<std::byte[]> packed;     ///< else the bytes.
    std::size_t bytes = 0;
    int source = 0;
    bool is_offer() const noexcept {
      return envelope.kind == EnvelopeKind::offer || envelope.kind == EnvelopeKind::device_offer;
    }
  };
  struct Unexpected {
    std::shared_ptr<Arrival> arrival;
  };
  static bool is_large(const MessageTransfer& transfer) noexcept;
  std::optional<TransferPtr> take_receive(const Address& address);
  bool take(PeerLink& link, int peer, const std::byte* at, bool all);
  bool take_piece(PeerLink& link, int peer, const std::byte* at);
  bool claim(const Arrival& arrival);
  void deliver(const TransferPtr& transfer, const Arrival& arrival, const std::byte* packed);
  void deliver_large(const TransferPtr& transfer, const Arrival& arrival);
  bool fits(MessageTransfer& transfer, const Arrival& arrival);
  bool set_aside_offer(PeerLink& link, const Address& address, Arrival&& arrival);
  bool read_on(MessageTransfer& transfer, std::size_t& most);
  void end_withdrawn(MessageTransfer& transfer);
  // receive_device.cpp
  bool take_device_offer(PeerLink& link, Arrival& arrival, const std::byte* content);
  void deliver_to_device(const TransferPtr& transfer, std::span<const std::byte> packed);
  void deliver_device(const TransferPtr& transfer, const Arrival& arrival);
  bool reach(MessageTransfer& transfer, const Arrival& arrival);
  bool reach_own(MessageTransfer& transfer, const DeviceSource& source);
  void note_path(PeerLink& link, PairPath path, const std::string& why);
  bool advance_moves();
  bool move_on(MessageTransfer& transfer);
  bool end_claim(MessageTransfer& transfer);
  void fail_move(MessageTransfer& transfer);
  bool write_piece(MessageTransfer& transfer, std::span<const std::byte> piece);
  static DeviceWriter& writer_of(MessageTransfer& transfer);
  bool is_awaited(int peer) const noexcept;
  void want_pieces(const TransferPtr& transfer);
  bool fault(PeerLink& link, const char* what);
  bool look_for_abandoned(PeerLink& link, int peer);
  bool has_pieces_of(int peer) const noexcept;
  bool end_pieces_of_gone(const PeerLink& link, int peer);
  void end(MessageTransfer& transfer, std::exception_ptr error = nullptr) noexcept;

  int rank_;
  std::uint32_t claims_;
  PeerLinks& links_;
  Matching<TransferPtr, Unexpected> matching_;
  std::vector<TransferPtr> reading_;
  std::vector<TransferPtr> piecing_;
  std::vector<TransferPtr> moving_;
  std::vector<int> probed_;  ///< Sources that probes wait for, as receives do.
  std::vector<std::byte> bounce_;
  std::size_t large_ = 0;  ///< Of the receives in matching_.
  std::map<std::uint64_t, ContextAbort> aborts_;
  std::vector<std::uint64_t> new_aborts_;
  std::vector<std::shared_ptr<void>> let_go_;
  bool ended_ = false;
  bool fault_ = false;
};

}  // namespace quadriga::message
