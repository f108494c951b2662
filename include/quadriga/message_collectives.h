// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/message_collectives.h: collectives that are started, and waited for later.
#pragma once

#include <quadriga/message.h>

#include <cstdint>
#include <span>

namespace quadriga::message {

/// Starts what the communicator's method without the `i` does, and returns at once.
///
/// All ranks start them in the same order, one thread of each at a time; a thread of the library
/// carries them out in that order, beside collectives that are called meanwhile, which they never
/// meet. Memory must live, and stay as it is, until its request has ended; the request's cancel()
/// is false. The end of the communicator's last copy cancels them on all ranks.
/// Errors: of the request, those of the method, on all ranks where they disagree; here
///         unavailable, and device_lost, of which the others' requests tell.
Request ibarrier(const Communicator& comm);
Request ibcast(const Communicator& comm, const ReceiveBuffer& elements, int root = 0);
Request ireduce(const Communicator& comm, const SendBuffer& from, const ReceiveBuffer& into,
                ReduceRule by = {}, int root = 0);
Request iallreduce(const Communicator& comm, const SendBuffer& from, const ReceiveBuffer& into,
                   ReduceRule by = {});
Request igather(const Communicator& comm, const SendBuffer& from, const ReceiveBuffer& into,
                int root = 0);
Request iallgather(const Communicator& comm, const SendBuffer& from, const ReceiveBuffer& into);
Request iscatter(const Communicator& comm, const SendBuffer& from, const ReceiveBuffer& into,
                 int root = 0);
Request ialltoall(const Communicator& comm, const SendBuffer& from, const ReceiveBuffer& into);
/// Combines the ranks' elements, of which rank i gets counts[i], the next after those of i - 1.
Request ireduce_scatter(const Communicator& comm, const SendBuffer& from, const ReceiveBuffer& into,
                        std::span<const std::int64_t> counts, ReduceRule by = {});

/// Which elements of a buffer, of one type and together in memory, are which rank's: counts[i] from
/// displacements[i] on; without the latter, the next after those of rank i - 1.
struct Counts {
  std::span<const std::int64_t> counts = {};
  std::span<const std::int64_t> displacements = {};
};

/// MPI's collectives of parts of any sizes, started; `wait()` of the request makes a call of them.
/// What a rank gives and what another expects of it must agree, or all ranks raise.
///
/// The root's `into`, or all ranks', gets each rank's elements.
Request igatherv(const Communicator& comm, const SendBuffer& from, const ReceiveBuffer& into,
                 const Counts& counts, int root = 0);
Request iallgatherv(const Communicator& comm, const SendBuffer& from, const ReceiveBuffer& into,
                    const Counts& counts);
/// Each rank gets its elements of the root's `from`.
Request iscatterv(const Communicator& comm, const SendBuffer& from, const Counts& counts,
                  const ReceiveBuffer& into, int root = 0);
/// Each rank gets elements of each rank's `from`.
Request ialltoallv(const Communicator& comm, const SendBuffer& from, const Counts& send_counts,
                   const ReceiveBuffer& into, const Counts& receive_counts);

/// Elements of any layout for a rank, and of one.
struct SendPart {
  SendBuffer from;
  int destination = 0;
};
struct ReceivePart {
  ReceiveBuffer into;
  int source = 0;
};
/// Of several parts for one rank the first goes to the first that is listed there. Between
/// neighbours, it is called by all ranks, also those that have none.
Request ialltoallw(const Communicator& comm, std::span<const SendPart> sends,
                   std::span<const ReceivePart> receives);
Request ineighbor_alltoall(const Communicator& comm, std::span<const SendPart> sends,
                           std::span<const ReceivePart> receives);

}  // namespace quadriga::message
