// SPDX-License-Identifier: BSD-3-Clause
// src/message/message_started.cpp: the public collectives that are started.
#include <quadriga/error.h>
#include <quadriga/message_collectives.h>

#include <memory>
#include <utility>

#include "message/buffer_place.h"
#include "message/communicator_common.h"

namespace quadriga::message {
namespace {

// Of places that are ready; a rank that has none tells the others.
template <class Buffers, class Call>
Request start_on(const Communicator& comm, CallKind kind, const Buffers& buffers,
                 const Call& call) {
  Communicator::Common& common = comm.common();
  StartedCollectives& lane = common.started();
  try {
    return common.request(lane.start(kind, call(buffers())));
  } catch (const Error& error) {
    lane.refuse(kind, error.what());
    throw;
  }
}

struct Both {
  MessageBuffer from, into;
};

template <class Call>
Request of_both(const Communicator& comm, CallKind kind, const SendBuffer& from,
                const ReceiveBuffer& into, const Call& call) {
  return start_on(
      comm, kind,
      [&] {
        return Both{ready_place_of(from), ready_place_of(into)};
      },
      [&](Both both) {
        return [both = std::move(both), call](CommunicatorCore& core) { call(core, both); };
      });
}

}  // namespace

Request ibarrier(const Communicator& comm) {
  Communicator::Common& common = comm.common();
  return common.request(
      common.started().start(CallKind::barrier, [](CommunicatorCore& core) { core.barrier({}); }));
}

Request ibcast(const Communicator& comm, const ReceiveBuffer& elements, int root) {
  return start_on(
      comm, CallKind::bcast, [&] { return ready_place_of(elements); },
      [root](MessageBuffer place) {
        return [root, place = std::move(place)](CommunicatorCore& core) {
          core.broadcast(place, root, {});
        };
      });
}

Request ireduce(const Communicator& comm, const SendBuffer& from, const ReceiveBuffer& into,
                ReduceOperation operation, int root) {
  return of_both(comm, CallKind::reduce, from, into,
                 [operation, root](CommunicatorCore& core, const Both& both) {
                   core.reduce(both.from, both.into, operation, root, {});
                 });
}

Request iallreduce(const Communicator& comm, const SendBuffer& from, const ReceiveBuffer& into,
                   ReduceOperation operation) {
  return of_both(comm, CallKind::allreduce, from, into,
                 [operation](CommunicatorCore& core, const Both& both) {
                   core.all_reduce(both.from, both.into, operation, {});
                 });
}

Request igather(const Communicator& comm, const SendBuffer& from, const ReceiveBuffer& into,
                int root) {
  return of_both(comm, CallKind::gather, from, into,
                 [root](CommunicatorCore& core, const Both& both) {
                   core.gather(both.from, both.into, root, {});
                 });
}

Request iallgather(const Communicator& comm, const SendBuffer& from, const ReceiveBuffer& into) {
  return of_both(
      comm, CallKind::allgather, from, into,
      [](CommunicatorCore& core, const Both& both) { core.all_gather(both.from, both.into, {}); });
}

Request iscatter(const Communicator& comm, const SendBuffer& from, const ReceiveBuffer& into,
                 int root) {
  return of_both(comm, CallKind::scatter, from, into,
                 [root](CommunicatorCore& core, const Both& both) {
                   core.scatter(both.from, both.into, root, {});
                 });
}

Request ialltoall(const Communicator& comm, const SendBuffer& from, const ReceiveBuffer& into) {
  return of_both(
      comm, CallKind::alltoall, from, into,
      [](CommunicatorCore& core, const Both& both) { core.all_to_all(both.from, both.into, {}); });
}

}  // namespace quadriga::message
