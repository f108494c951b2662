// SPDX-License-Identifier: BSD-3-Clause
// src/message/message_started.cpp: the public collectives that are started, of equal parts.
#include <quadriga/message_collectives.h>

#include <utility>
#include <vector>

#include "message/start_collective.h"

namespace quadriga::message {
namespace {

// Of elements that are sent and others that are received.
template <class Call>
Request of_both(const Communicator& comm, CallKind kind, const SendBuffer& from,
                const ReceiveBuffer& into, Call call) {
  return start_collective(
      comm, kind,
      [&](Operands& with) {
        with.add(with.from, 0, from);
        with.add(with.into, 0, into);
      },
      [call = std::move(call)](CommunicatorCore& core, const Operands& with) {
        call(core, with.from.front().place, with.into.front().place);
      });
}

}  // namespace

Request ibarrier(const Communicator& comm) {
  return start_collective(
      comm, CallKind::barrier, [](Operands&) {},
      [](CommunicatorCore& core, const Operands&) { core.barrier({}); });
}

Request ibcast(const Communicator& comm, const ReceiveBuffer& elements, int root) {
  return start_collective(
      comm, CallKind::bcast, [&](Operands& with) { with.add(with.into, 0, elements); },
      [root](CommunicatorCore& core, const Operands& with) {
        core.broadcast(with.into.front().place, root, {});
      });
}

Request ireduce(const Communicator& comm, const SendBuffer& from, const ReceiveBuffer& into,
                ReduceRule by, int root) {
  return of_both(comm, CallKind::reduce, from, into,
                 [=](CommunicatorCore& core, const MessageBuffer& out, const MessageBuffer& in) {
                   core.reduce(out, in, by.operation, root, {}, by.reproducible);
                 });
}

Request iallreduce(const Communicator& comm, const SendBuffer& from, const ReceiveBuffer& into,
                   ReduceRule by) {
  return of_both(comm, CallKind::allreduce, from, into,
                 [=](CommunicatorCore& core, const MessageBuffer& out, const MessageBuffer& in) {
                   core.all_reduce(out, in, by.operation, {}, by.reproducible);
                 });
}

Request igather(const Communicator& comm, const SendBuffer& from, const ReceiveBuffer& into,
                int root) {
  return of_both(comm, CallKind::gather, from, into,
                 [=](CommunicatorCore& core, const MessageBuffer& out, const MessageBuffer& in) {
                   core.gather(out, in, root, {});
                 });
}

Request iallgather(const Communicator& comm, const SendBuffer& from, const ReceiveBuffer& into) {
  return of_both(comm, CallKind::allgather, from, into,
                 [](CommunicatorCore& core, const MessageBuffer& out, const MessageBuffer& in) {
                   core.all_gather(out, in, {});
                 });
}

Request iscatter(const Communicator& comm, const SendBuffer& from, const ReceiveBuffer& into,
                 int root) {
  return of_both(comm, CallKind::scatter, from, into,
                 [=](CommunicatorCore& core, const MessageBuffer& out, const MessageBuffer& in) {
                   core.scatter(out, in, root, {});
                 });
}

Request ialltoall(const Communicator& comm, const SendBuffer& from, const ReceiveBuffer& into) {
  return of_both(comm, CallKind::alltoall, from, into,
                 [](CommunicatorCore& core, const MessageBuffer& out, const MessageBuffer& in) {
                   core.all_to_all(out, in, {});
                 });
}

Request ireduce_scatter(const Communicator& comm, const SendBuffer& from, const ReceiveBuffer& into,
                        std::span<const std::int64_t> counts, ReduceRule by) {
  return of_both(comm, CallKind::reduce_scatter, from, into,
                 [by, all = std::vector<std::int64_t>(counts.begin(), counts.end())](
                     CommunicatorCore& core, const MessageBuffer& out, const MessageBuffer& in) {
                   core.reduce_scatter(out, in, all, by.operation, {}, by.reproducible);
                 });
}

}  // namespace quadriga::message
