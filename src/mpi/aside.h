// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/aside.h: messages that were taken from MPI before the program asked for them.
//
// Only receiving an envelope tells its payload's length, which a probe has to say. So a probe that
// meets one takes it, and with it all older messages of its source in that communicator, as handles
// of matched probes. What is set aside is older than all that MPI holds of its source, so every
// receive and probe looks here first, and messages don't overtake each other.
//
// Invariants
//   1. The list is in the order of arrival of each source; the table's lock guards it.
//   2. An entry is either a matched message of MPI's, or has been received (opened).
#pragma once

#include <atomic>
#include <list>
#include <optional>

#include "mpi/incoming.h"

namespace quadriga::mpi {

struct EarlyMessage {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Status status{};  ///< As a probe has to report it.
  MPI_Message message = MPI_MESSAGE_NULL;
  bool opened = false;
  MpiEnvelope content{};  ///< If it was opened.

  /// Receives it; MPI's error code.
  int receive(Incoming& into, MPI_Status& seen) noexcept;
};

/// Entries; asked by every receive.
extern std::atomic<int> early_messages;

/// The oldest that fits; it isn't in the list any more.
std::optional<EarlyMessage> take_early(MPI_Comm comm, int source, int tag);
inline std::optional<EarlyMessage> early_for(MPI_Comm comm, int source, int tag) {
  if (early_messages.load(std::memory_order_acquire) == 0) return std::nullopt;
  return take_early(comm, source, tag);
}
/// Its status, if there is one.
bool find_early(MPI_Comm comm, int source, int tag, MPI_Status& status);

/// After a probe of MPI's has reported `status`: if an envelope may be meant, takes it and corrects
/// the status. False if another thread took the message: the probe has to be repeated.
bool look_at(MPI_Comm comm, MPI_Status& status);
/// Opens a matched message that may be an envelope. It was one that MPI handed out.
EarlyMessage opened(MPI_Comm comm, MPI_Message message, const MPI_Status& status);

/// Before a communicator is freed, whose handle may be another's soon: what nobody received of it.
void forget_early(MPI_Comm comm);

// Messages that were opened, under handles for MPI_Mrecv and MPI_Imrecv.
MPI_Message keep_opened(EarlyMessage&& message);
EarlyMessage take_opened(MPI_Message handle);

}  // namespace quadriga::mpi
