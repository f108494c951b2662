// SPDX-License-Identifier: BSD-3-Clause
// src/message/peer_link.h: a rank's rings to and from another, and what is known of that rank.
#pragma once

#include <sys/types.h>

#include <exception>
#include <string>
#include <vector>

#include "message/peer_memory.h"
#include "message/transfer.h"
#include "message/wire/claims.h"
#include "message/wire/doorbell.h"
#include "message/wire/slot_ring.h"

namespace quadriga::message {

enum class Presence : std::uint8_t { here, left, lost };

struct PeerLink {
  PeerLink(const SharedSegment& segment, int own, int other, int event)
      : messages_out(segment.message_ring(own, other), segment.shape().messages),
        pieces_out(segment.piece_ring(own, other), segment.shape().pieces),
        messages_in(segment.message_ring(other, own), segment.shape().messages),
        pieces_in(segment.piece_ring(other, own), segment.shape().pieces),
        bell(segment.words(other), event),
        claims(segment, other),
        path_in(&segment.path(other, own)),
        path_out(&segment.path(own, other)),
        rank(other) {}

  RingWriter messages_out;
  RingWriter pieces_out;
  RingReader messages_in;
  RingReader pieces_in;
  Doorbell bell;
  Claims claims;                         ///< The other rank's.
  std::atomic<std::uint32_t>* path_in;   ///< What this rank found out of the other's memory,
  std::atomic<std::uint32_t>* path_out;  ///< and the other one of this one's (PairPath).
  int rank;                              ///< Of the world.
  PeerMemory memory{};
  Presence presence = Presence::here;
  std::string reason;  ///< Of its loss; or what was wrong with what it sent, until it is lost.
  pid_t pid = -1;      ///< -1: its memory can't be read.
  int process = -1;    ///< A descriptor of the process; -1: a thread of this one.
  bool can_read = true;
  bool is_believed = true;  ///< Nothing that it sent was wrong.
  std::size_t unexpected_bytes = 0;
  std::size_t aborts = 0;  ///< That it sent.
  std::size_t offers = 0;  ///< Of its that lie aside, withdrawn ones included.

  /// It sent what it mustn't: nothing more of it is read, and it counts as lost.
  void distrust(const char* what) {
    reason = what;
    is_believed = false;
  }
};

/// Whether a process has not ended yet; -1 is this one.
bool process_lives(int descriptor) noexcept;

using PeerLinks = std::vector<PeerLink>;

/// PeerLost for what a transfer, or a call that has none, needed of a rank of the world.
std::exception_ptr loss_of(const Group& group, int rank, const PeerLink& link,
                           const std::string& during);
inline std::exception_ptr loss_of(const MessageTransfer& transfer, int rank, const PeerLink& link) {
  return loss_of(*transfer.group, rank, link, transfer.text());
}

}  // namespace quadriga::message
