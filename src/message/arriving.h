// SPDX-License-Identifier: BSD-3-Clause
// src/message/arriving.h: what all ways of a large message to its receive have in common: where its
// bytes go, and how its sender is told of its end.
#pragma once

#include <cstddef>
#include <exception>
#include <span>

#include "message/device_moves.h"
#include "message/peer_link.h"
#include "message/transfer.h"
#include "message/transfer_ends.h"

namespace quadriga::message {

/// The link to the rank that sends what a receive gets.
inline PeerLink& sender_of(PeerLinks& links, const MessageTransfer& transfer) noexcept {
  return links[static_cast<std::size_t>(transfer.sender)];
}

/// Puts packed bytes to where they belong in the host's memory.
void unpack_at(const MessageBuffer& place, std::size_t offset, std::span<const std::byte> from);

/// What brings packed bytes to a device. Errors: what the device says.
DeviceWriter& writer_of(MessageTransfer& transfer);

/// Ends a message whose sender took it back.
void end_withdrawn(MessageTransfer& transfer, TransferEnds& ends);

/// Tells its sender that a claimed or held message is over, if it is one of another rank; false if
/// that one has taken it back.
bool end_claim(PeerLinks& links, const MessageTransfer& transfer) noexcept;

/// Ends a receive by a fault of a device: its sender has done nothing wrong.
void fail_receive(PeerLinks& links, MessageTransfer& transfer, std::exception_ptr error,
                  TransferEnds& ends);

}  // namespace quadriga::message
