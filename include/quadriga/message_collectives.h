// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/message_collectives.h: collectives that are started, and waited for later.
#pragma once

#include <quadriga/message.h>

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
                ReduceOperation operation = ReduceOperation::sum, int root = 0);
Request iallreduce(const Communicator& comm, const SendBuffer& from, const ReceiveBuffer& into,
                   ReduceOperation operation = ReduceOperation::sum);
Request igather(const Communicator& comm, const SendBuffer& from, const ReceiveBuffer& into,
                int root = 0);
Request iallgather(const Communicator& comm, const SendBuffer& from, const ReceiveBuffer& into);
Request iscatter(const Communicator& comm, const SendBuffer& from, const ReceiveBuffer& into,
                 int root = 0);
Request ialltoall(const Communicator& comm, const SendBuffer& from, const ReceiveBuffer& into);

}  // namespace quadriga::message
