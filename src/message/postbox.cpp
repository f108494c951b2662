// SPDX-License-Identifier: BSD-3-Clause
// src/message/postbox.cpp: what waits, what lies aside, and how much of it a sender may leave.
#include "message/postbox.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace quadriga::message {
namespace {

// Its message may not fit a slot.
bool is_large(const MessageTransfer& transfer) noexcept {
  return transfer.place.bytes() > 4096 || transfer.place.on_device();
}

}  // namespace

std::optional<TransferPtr> Postbox::take_receive(const Address& message) {
  auto taken = matching_.take_receive(message);
  if (taken && is_large(**taken)) --large_;
  return taken;
}

ArrivalPtr Postbox::take_message(const Address& wanted) {
  const auto taken = matching_.take_message(wanted);
  if (!taken) return nullptr;
  if (!(*taken)->is_offer()) {
    std::size_t& aside = link((*taken)->source).unexpected_bytes;
    aside -= std::min(aside, (*taken)->bytes + sizeof(Arrival));
  }
  return *taken;
}

void Postbox::add_receive(TransferPtr transfer) {
  if (is_large(*transfer)) ++large_;
  const Address wanted{transfer->context, transfer->peer, transfer->tag};
  matching_.add_receive(wanted, std::move(transfer));
}

bool Postbox::remove(const TransferPtr& transfer) {
  return !remove_receives([&](const Address&, const MessageTransfer& each) {
            return &each == transfer.get();
          }).empty();
}

std::list<TransferPtr> Postbox::remove_receives(
    const std::function<bool(const Address&, const MessageTransfer&)>& which) {
  auto removed = matching_.remove_receives(
      [&](const Address& wanted, const TransferPtr& each) { return which(wanted, *each); });
  large_ -= static_cast<std::size_t>(
      std::ranges::count_if(removed, [](const TransferPtr& each) { return is_large(*each); }));
  return removed;
}

std::vector<TransferPtr> Postbox::receives() const {
  std::vector<TransferPtr> all;
  matching_.visit_receives([&](const TransferPtr& each) { all.push_back(each); });
  return all;
}

bool Postbox::has_room(int peer) const noexcept {
  if (link(peer).unexpected_bytes < most_unexpected) return true;
  const auto wants = [&](int source) { return source == any_source || source == peer; };
  return matching_.is_awaited(peer) || std::ranges::any_of(probed_, wants);
}

void Postbox::add_whole(const Address& address, Arrival&& arrival, const std::byte* packed) {
  // An empty message takes memory too.
  link(arrival.source).unexpected_bytes += arrival.bytes + sizeof(Arrival);
  arrival.packed =
      std::make_unique_for_overwrite<std::byte[]>(std::max<std::size_t>(1, arrival.bytes));
  std::memcpy(arrival.packed.get(), packed, arrival.bytes);
  matching_.add_message(address, std::make_shared<Arrival>(std::move(arrival)));
}

// Withdrawn ones are dropped whenever there are so many that half of them must be.
bool Postbox::add_offer(const Address& address, Arrival&& arrival) {
  PeerLink& from = link(arrival.source);
  if (++from.offers > 2 * std::size_t{claims_per_pair}) {
    from.offers = 1;
    matching_.remove_messages([&](const Address& other, const ArrivalPtr& each) {
      if (other.source != address.source || !each->is_offer()) return false;
      const bool is_over = from.claims.state(each->claim()) != ClaimState::offered;
      if (!is_over) ++from.offers;
      return is_over;
    });
    if (from.offers > std::size_t{claims_per_pair} + 1) return false;
  }
  matching_.add_message(address, std::make_shared<Arrival>(std::move(arrival)));
  return true;
}

std::optional<MessageStatus> Postbox::find(const Address& wanted, std::span<const Address> before,
                                           const Group& group) const {
  const auto is_there = [&](const ArrivalPtr& each) {  // Else it was withdrawn.
    return !each->is_offer() ||
           link(each->source).claims.state(each->claim()) == ClaimState::offered;
  };
  const auto* const found = matching_.find_message(wanted, before, is_there);
  if (found == nullptr) return std::nullopt;
  const Arrival& arrival = *found->second;
  return MessageStatus{group.rank_of(arrival.source), arrival.envelope.tag, arrival.bytes};
}

void Postbox::end_probe(int source) {
  const auto at = std::ranges::find(probed_, source);
  if (at != probed_.end()) probed_.erase(at);
}

}  // namespace quadriga::message
