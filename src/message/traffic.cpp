// SPDX-License-Identifier: BSD-3-Clause
// src/message/traffic.cpp: starting transfers, moving them on, and ending those of gone ranks.
#include "message/traffic.h"

#include <quadriga/error.h>

#include <algorithm>

#include "message/stream_order.h"

namespace quadriga::message {
namespace {

PeerLinks links_of(const SharedSegment& segment, int rank, const std::vector<Member>& members) {
  PeerLinks links;
  for (int other = 0; other < segment.shape().ranks; ++other) {
    const Member& member = members[static_cast<std::size_t>(other)];
    links.emplace_back(segment, rank, other, member.event);
    links.back().pid = member.pid;
    links.back().process = member.process;
  }
  return links;
}

bool has(const Group& group, int rank) noexcept { return group.rank_of(rank) >= 0; }

Address address_of(const MessageTransfer& receive) noexcept {
  return {receive.context, receive.peer, receive.tag};
}

// Of receives: whether they might take the same message; of sends of this rank to itself: whether
// one receive might take either.
bool are_in_order(const MessageTransfer& one, const MessageTransfer& other) noexcept {
  if (one.sends != other.sends) return false;
  return one.sends ? one.context == other.context : address_of(one).overlaps(address_of(other));
}

}  // namespace

Traffic::Traffic(const SharedSegment& segment, int rank, const std::vector<Member>& members)
    : segment_(segment),
      rank_(rank),
      own_(segment.words(rank), members[static_cast<std::size_t>(rank)].event),
      links_(links_of(segment, rank, members)),
      sends_(segment, rank, links_, ends_),
      receives_(rank, segment.shape().claims(), links_, aborts_, ends_) {}

bool Traffic::send_now(const Posting& message) {
  const PeerLink& link = links_[static_cast<std::size_t>(message.peer)];
  return message.peer != rank_ && link.presence == Presence::here &&
         !aborts_.find(message.context) &&
         sends_.send_now(message.place, message.peer, message.tag, message.context);
}

// Nothing starts that needs a rank that is gone.
void Traffic::start(const TransferPtr& transfer) {
  const int peer = transfer->peer;
  if (const ContextAbort* const found = aborts_.find(transfer->context))
    return end(*transfer, found->error(*transfer->group));
  if (transfer->sends && peer != rank_) {
    const PeerLink& link = links_[static_cast<std::size_t>(peer)];
    if (link.presence != Presence::here) return end(*transfer, loss_of(*transfer, peer, link));
    return sends_.start(transfer);
  }
  if (is_delayed(transfer)) return delayed_.push_back(transfer);
  start_here(transfer);
}

void Traffic::start_here(const TransferPtr& transfer) {
  if (!transfer->sends) return start_receive(transfer);
  receives_.send_to_self(transfer->place, transfer->tag, transfer->context);
  end(*transfer);
}

void Traffic::start_receive(const TransferPtr& transfer) {
  const int peer = transfer->peer;
  const auto fail_for = [&](int rank) {
    receives_.cancel(transfer);
    end(*transfer, loss_of(*transfer, rank, links_[static_cast<std::size_t>(rank)]));
  };
  receives_.start(transfer);
  if (transfer->done.load(std::memory_order_relaxed)) return;
  if (peer != any_source) {
    const PeerLink& link = links_[static_cast<std::size_t>(peer)];
    if (link.presence != Presence::here && transfer->expected == 0) fail_for(peer);
    return;
  }
  if (transfer->expected > 0) return;
  const int gone = needed_by_any(*transfer->group);
  if (gone >= 0) fail_for(gone);
}

bool Traffic::is_delayed(const TransferPtr& transfer) {
  const bool is_behind = std::ranges::any_of(delayed_, [&](const TransferPtr& each) {
    return are_in_order(*each, *transfer) && each != transfer;
  });
  return is_behind || (transfer->order && !transfer->order->is_reached());
}

bool Traffic::start_delayed() {
  bool moved = false;
  for (const TransferPtr& each : std::exchange(delayed_, {})) {
    try {
      if (is_delayed(each)) {
        delayed_.push_back(each);
        continue;
      }
      start_here(each);
    } catch (const std::exception&) {
      end(*each, std::current_exception());
    }
    moved = true;
  }
  if (moved) own_.ring();
  return moved;
}

void Traffic::drop_delayed(
    const std::function<bool(const MessageTransfer&)>& which,
    const std::function<std::exception_ptr(const MessageTransfer&)>& error_of) {
  std::erase_if(delayed_, [&](const TransferPtr& each) {
    if (!which(*each)) return false;
    end(*each, error_of(*each));
    return true;
  });
}

bool Traffic::cancel(const TransferPtr& transfer, BegunSends begun) {
  if (std::erase(delayed_, transfer) > 0) return true;
  if (transfer->sends) return sends_.cancel(*transfer, begun);
  receives_.cancel(transfer);
  return true;
}

std::vector<TransferPtr> Traffic::pending_sends() const {
  std::vector<TransferPtr> all = sends_.pending();
  for (const TransferPtr& each : delayed_)
    if (each->sends) all.push_back(each);
  return all;
}

std::optional<MessageStatus> Traffic::find(const Address& wanted, const Group& group) const {
  std::vector<Address> before;
  for (const TransferPtr& each : delayed_)
    if (!each->sends) before.push_back(address_of(*each));
  return receives_.postbox().find(wanted, before, group);
}

void Traffic::drop_receives(
    const std::function<std::exception_ptr(const MessageTransfer&)>& error_of) {
  const auto all = [](const MessageTransfer&) { return true; };
  drop_delayed(all, error_of);
  receives_.drop_if(all, error_of);
}

void Traffic::start_move(const TransferPtr& transfer) {
  if (const ContextAbort* const found = aborts_.find(transfer->context))
    return end(*transfer, found->error(*transfer->group));
  receives_.start_move(transfer);
}

int Traffic::needed_by_any(const Group& group) const noexcept {
  int gone = -1;
  bool is_somebody_here = group.size() == 1;
  for (const int rank : group.world) {
    const Presence presence = links_[static_cast<std::size_t>(rank)].presence;
    if (presence == Presence::lost) return rank;
    if (presence == Presence::left) gone = rank;
    is_somebody_here = is_somebody_here || (rank != rank_ && presence == Presence::here);
  }
  return is_somebody_here ? -1 : gone;
}

bool Traffic::progress() {
  bool moved = !delayed_.empty() && start_delayed();
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank_) continue;
    moved = receives_.advance(peer) || moved;
  }
  moved = receives_.advance_reads() || moved;
  moved = sends_.advance() || moved;
  for (int peer = 0; peer < size(); ++peer) {
    const PeerLink& link = links_[static_cast<std::size_t>(peer)];
    if (!link.is_believed && link.presence == Presence::here) [[unlikely]]
      lose(peer, Presence::lost, link.reason);
  }
  for (const std::uint64_t context : aborts_.take_new()) end_aborted(context);
  if (segment_.departures().load(std::memory_order_seq_cst) != departures_) [[unlikely]]
    look_for_departures();
  if (ends_.take_any()) own_.ring();
  return moved;
}

void Traffic::look_for_departures() {
  departures_ = segment_.departures().load(std::memory_order_seq_cst);
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != rank_ && segment_.words(peer).left.load(std::memory_order_acquire) != 0)
      lose(peer, Presence::left, "");
  }
}

void Traffic::lose(int peer, Presence presence, const std::string& reason) {
  PeerLink& link = links_[static_cast<std::size_t>(peer)];
  if (link.presence != Presence::here) return;
  if (link.reason.empty()) receives_.advance(peer, true);
  link.presence = presence;
  link.reason = reason;
  const auto is_alone = [&](const Group& group) {
    return std::ranges::all_of(group.world, [&](int rank) {
      return rank == rank_ || links_[static_cast<std::size_t>(rank)].presence != Presence::here;
    });
  };
  // A collective needs all ranks, and a receive from any rank can't tell whom it needs.
  const auto also = [&](const MessageTransfer& transfer) {
    const bool any = !transfer.sends && transfer.peer == any_source;
    if (presence == Presence::left) return any && is_alone(*transfer.group);
    return (any || transfer.operation > CallKind::probe) && has(*transfer.group, peer);
  };
  const auto error = [&](const MessageTransfer& transfer) { return loss_of(transfer, peer, link); };
  receives_.drop(peer, also, error);
  sends_.drop(peer, also, error);
  own_.ring();
}

void Traffic::abort(const Group& group, const ContextAbort& why) {
  aborts_.add(why);
  for (const int peer : group.world) {
    const PeerLink& link = links_[static_cast<std::size_t>(peer)];
    if (peer != rank_ && link.presence == Presence::here) sends_.send_abort(peer, why);
  }
  end_aborted(why.context);
}

void Traffic::end_aborted(std::uint64_t context) {
  const ContextAbort why = *aborts_.find(context);
  const auto belongs = [&](const MessageTransfer& transfer) { return transfer.context == context; };
  const auto error = [&](const MessageTransfer& transfer) { return why.error(*transfer.group); };
  drop_delayed(belongs, error);
  receives_.drop_if(belongs, error);
  sends_.drop(-1, belongs, error);
}

void Traffic::leave() {
  segment_.words(rank_).left.store(1, std::memory_order_seq_cst);
  segment_.departures().fetch_add(1, std::memory_order_seq_cst);
  for (const PeerLink& link : links_) link.bell.ring();
}

}  // namespace quadriga::message
