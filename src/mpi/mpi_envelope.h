// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/mpi_envelope.h: how our messages travel: envelopes by MPI, payloads by us.
//
// The envelope is an ordinary MPI message of envelope_bytes, sent on the program's communicator
// with the program's tag; MPI matches it. Its length and token say which payload the sender has
// offered to this receiver. A payload is offered before its envelope is sent, so that fetching it
// never waits for a call of the sender (docs/decisions/0118-envelopes.md).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "mpi/datatypes.h"
#include "mpi/world.h"

namespace quadriga::mpi {

/// What MPI carries of a message of ours. A program's own messages of as many bytes are told from
/// it by the mark. Elements of 1, 2, 4, 8, 16 bytes end where it ends: some MPIs refuse to receive
/// half of one (Datatype::takes_envelope).
struct MpiEnvelope {
  unsigned char mark[16];
  unsigned char length[8];
  unsigned char token[4];
  unsigned char sender[4];
  unsigned char slot[4];
  unsigned char rest[28];

  std::int64_t bytes() const noexcept;
  int tag() const noexcept;
  int peer() const noexcept;
  /// Of ProbedSends; -1: the send isn't synchronous.
  int probed_slot() const noexcept;
  /// Whether it is one of this job's.
  bool is_valid() const noexcept;
};
inline constexpr int envelope_bytes = 64;
static_assert(sizeof(MpiEnvelope) == envelope_bytes);

/// A payload that is offered to a rank until it has fetched it.
class PayloadOffer {
 public:
  using Clock = std::chrono::steady_clock;
  /// Offers it; a synchronous send has a slot of ProbedSends.
  /// Errors: those of CommunicatorCore::start_send.
  PayloadOffer(message::MessageBuffer place, int peer, int slot = -1);

  const MpiEnvelope& envelope() const noexcept { return envelope_; }
  /// MPI has ended the send of the envelope: its receiver has so long to come.
  void begin_patience();
  /// Whether the program may have its memory back now. Copies the payload aside if its receiver
  /// hasn't come for as long as a copy takes: MPI calls that don't look for envelopes might keep
  /// the receiver, which in turn waits for this rank. A receiver that has begun to fetch it is in
  /// none of those. Sends that MPI ends with their receive ask only after MPI has ended that of the
  /// envelope.
  bool is_over();
  /// Waits until it may.
  void finish();
  /// Nobody will fetch it: the envelope wasn't sent.
  void withdraw() noexcept;

 private:
  bool copy_aside();
  bool waits_for_receive();
  message::MessageBuffer place_;
  int peer_ = 0;
  MpiEnvelope envelope_{};
  message::TransferPtr transfer_;
  Clock::time_point patience_;
  int slot_ = -1;  ///< Until the receive of a synchronous send has begun.
  bool kept_ = false;
  bool over_ = false;
};

/// Where a receive puts what arrives.
struct Destination {
  void* buffer = nullptr;
  std::int64_t count = 0;
  DatatypePtr type;
  message::MessageBuffer place() const;
};

/// Fetches the payload of an envelope, of `bytes`; MPI's error code. Shorter destinations are
/// MPI_ERR_TRUNCATE, and the sender goes on.
int fetch(const MpiEnvelope& envelope, const Destination& into, std::int64_t& bytes) noexcept;

/// MPI's error code for the exception that is being handled; says on standard error what isn't the
/// program's fault.
int code_of_exception() noexcept;

}  // namespace quadriga::mpi
