// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/sending.h: which way a message goes: by MPI as it is, packed by MPI, or by envelope.
#pragma once

#include <memory>
#include <optional>

#include "mpi/mpi_envelope.h"

namespace quadriga::mpi {

enum class SendMode : std::uint8_t { standard, synchronous, ready };
enum class SendWay : std::uint8_t {
  native,    ///< As the program wrote it.
  packed,    ///< Small, or to a rank without the library: a device's bytes, packed, by MPI.
  envelope,  ///< Offered.
};

/// A send as the program wrote it.
struct SendCall {
  const void* buffer = nullptr;
  WideCount count = 0;
  MPI_Datatype datatype = MPI_DATATYPE_NULL;
  int destination = MPI_PROC_NULL;
  int tag = 0;
  MPI_Comm comm = MPI_COMM_NULL;
};

/// A message on its way.
struct Outgoing {
  SendWay way = SendWay::native;
  std::optional<message::MessageBuffer> place;  ///< Unless it is native.
  int peer = -1;
  ProbedSends::Slot slot;  ///< Of a synchronous send by envelope.
  std::int64_t bytes() const noexcept { return place->layout.bytes(); }
  /// All of it, side by side. Errors: too_large if MPI's counts can't say it (2 GiB before MPI 4).
  std::unique_ptr<std::byte[]> packed() const;
};

/// Only if taken.sends. Calls that MPI will refuse are native. Errors: those of layouts;
/// unavailable if the function is switched off and the buffer a device's.
Outgoing outgoing_of(Function function, const SendCall& call);

// MPI's function of each mode.
int native_send(SendMode mode, const SendCall& call) noexcept;
int native_isend(SendMode mode, const SendCall& call, MPI_Request* request) noexcept;
int native_send_init(SendMode mode, const SendCall& call, MPI_Request* request) noexcept;

/// The whole of each family.
int send(Function function, SendMode mode, const SendCall& call) noexcept;
int isend(Function function, SendMode mode, const SendCall& call, MPI_Request* request) noexcept;
int send_init(Function function, SendMode mode, const SendCall& call,
              MPI_Request* request) noexcept;

}  // namespace quadriga::mpi
