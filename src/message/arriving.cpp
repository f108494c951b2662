// SPDX-License-Identifier: BSD-3-Clause
// src/message/arriving.cpp: bytes into their places, and ends of large messages.
#include "message/arriving.h"

#include <quadriga/error.h>

#include <cstring>
#include <memory>
#include <utility>

#include "message/pack/stream.h"

namespace quadriga::message {

void unpack_at(const MessageBuffer& place, std::size_t offset, std::span<const std::byte> from) {
  if (from.empty()) return;
  if (std::byte* const flat = place.flat())
    std::memcpy(flat + offset, from.data(), from.size());
  else
    Unpacker(place.layout, place.data).unpack(offset, from);
}

DeviceWriter& writer_of(MessageTransfer& transfer) {
  if (!transfer.writer)
    transfer.writer =
        std::make_shared<DeviceWriter>(place_on_device(transfer.place), transfer.expected);
  return *transfer.writer;
}

void end_withdrawn(MessageTransfer& transfer, TransferEnds& ends) {
  ends.end(transfer, std::make_exception_ptr(
                         Error(Errc::cancelled, transfer.text() + ": the sender gave up in the "
                                                                  "middle of the message")));
}

bool end_claim(PeerLinks& links, const MessageTransfer& transfer) noexcept {
  if (transfer.claim.number == 0) return true;  // No message of another rank.
  PeerLink& link = sender_of(links, transfer);
  const bool ended = link.claims.change(transfer.claim, ClaimState::held, ClaimState::done) ||
                     link.claims.change(transfer.claim, ClaimState::claimed, ClaimState::done);
  link.bell.ring();
  return ended;
}

void fail_receive(PeerLinks& links, MessageTransfer& transfer, std::exception_ptr error,
                  TransferEnds& ends) {
  transfer.stop_moving();
  end_claim(links, transfer);
  ends.end(transfer, std::move(error));
}

}  // namespace quadriga::message
