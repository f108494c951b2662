// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/together.h: collectives of Quadriga's own, where all ranks pass memory of devices.
//
// Invariants
//   1. All ranks of a communicator take the same way. What decides whether they are asked is the
//      same on all of them: bytes, function, what they agreed on at MPI_Init, the communicator.
//   2. They are asked by a collective of MPI on that communicator, before the program's. When
//      it ends all ranks have come, so nobody needs MPI to go on within ours.
#pragma once

#include <optional>

#include "message/communicator.h"
#include "mpi/native.h"
#include "mpi/switches.h"

namespace quadriga::mpi {

/// From how many bytes on ranks are asked: that takes some microseconds, and a payload of this size
/// as much as a hundred times longer by way of the host.
inline constexpr std::int64_t least_asked_bytes = std::int64_t{1} << 20;

/// MPI_Bcast by us: MPI's error code. Empty if it has to be MPI's.
std::optional<int> broadcast_together(void* buffer, std::int64_t count, MPI_Datatype type, int root,
                                      MPI_Comm comm);
/// The same for MPI_Allreduce.
std::optional<int> all_reduce_together(const void* from, void* into, std::int64_t count,
                                       MPI_Datatype type, MPI_Op operation, MPI_Comm comm);

}  // namespace quadriga::mpi
