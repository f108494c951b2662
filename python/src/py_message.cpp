// SPDX-License-Identifier: BSD-3-Clause
// python/src/py_message.cpp: communicators and requests.
//
// Invariants
//   1. No call enters the library with the GIL: its lock is never waited for by who holds the GIL.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <quadriga/error.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>

#include "base/config.h"
#include "bindings.h"
#include "gil_gate.h"
#include "message/communicator.h"
#include "message/join.h"
#include "message/start.h"
#include "py_array_place.h"
#include "py_message_tasks.h"
#include "py_plan.h"

namespace quadriga::python {
namespace {

using message::CallKind;
using message::CommunicatorCore;
using message::ElementType;
using message::Endpoint;
using message::Layout;
using message::MessageBuffer;
using message::MessageStatus;
using message::Patience;
using message::ReduceOperation;
using message::TransferPtr;

// The last one to hold an endpoint ends it, which waits for its thread: without the GIL.
std::shared_ptr<Endpoint> without_gil(std::shared_ptr<Endpoint> endpoint) {
  Endpoint* const at = endpoint.get();
  return {at, [held = std::move(endpoint)](Endpoint*) mutable {
            std::optional<GilReleased> released;
            if (Py_IsInitialized() != 0 && PyGILState_Check() != 0) released.emplace();
            held.reset();
          }};
}

struct PyRequest {
  std::shared_ptr<Endpoint> endpoint;
  TransferPtr transfer;
};

struct PyCommunicator {
  std::shared_ptr<Endpoint> endpoint;  // Outlives the communicator.
  CommunicatorCore communicator;
  std::shared_ptr<MessageLane> lane;  // Null until tasks use it.

  explicit PyCommunicator(std::shared_ptr<Endpoint> made)
      : endpoint(std::move(made)), communicator(endpoint) {}
  explicit PyCommunicator(std::shared_ptr<Endpoint> of, CommunicatorCore part)
      : endpoint(std::move(of)), communicator(std::move(part)) {}

  void send(nb::handle array, int destination, int tag, nb::handle layout, double deadline) {
    const ArrayPlace from(array, layout, false);
    const GilReleased released;
    communicator.send(from.place, destination, tag, patience_of(deadline));
  }
  MessageStatus recv(nb::handle array, int source, int tag, nb::handle layout, double deadline) {
    const ArrayPlace into(array, layout, true);
    const GilReleased released;
    return communicator.receive(into.place, source, tag, patience_of(deadline));
  }
  PyRequest isend(nb::handle array, int destination, int tag, nb::handle layout) {
    const auto from = shared_place(array, layout, false);
    const GilReleased released;
    return {endpoint, communicator.start_send(from->place, destination, tag, from)};
  }
  PyRequest irecv(nb::handle array, int source, int tag, nb::handle layout) {
    const auto into = shared_place(array, layout, true);
    const GilReleased released;
    return {endpoint, communicator.start_receive(into->place, source, tag, into)};
  }
  MessageStatus sendrecv(nb::handle sent, int destination, int send_tag, nb::handle received,
                         int source, int receive_tag, nb::handle send_layout,
                         nb::handle receive_layout, double deadline) {
    const ArrayPlace from(sent, send_layout, false), into(received, receive_layout, true);
    const GilReleased released;
    return communicator.send_receive(from.place, destination, send_tag, into.place, source,
                                     receive_tag, patience_of(deadline));
  }
  std::optional<MessageStatus> probe(int source, int tag, bool waits, double deadline) {
    const GilReleased released;
    std::optional<Patience> patience;
    if (waits) patience = patience_of(deadline);
    return communicator.probe(source, tag, patience);
  }
  std::string close(double seconds) {
    const GilReleased released;
    return endpoint->close(patience_of(seconds));
  }
};

ReduceOperation operation_named(std::string_view name) {
  for (int i = 0; i < message::reduce_operations; ++i)
    if (message::name(static_cast<ReduceOperation>(i)) == name)
      return static_cast<ReduceOperation>(i);
  fail(Errc::invalid_argument,
       "reduce: no operation '" + std::string(name) +
           "'; expected sum, prod, min, max, land, lor, lxor, band, bor or bxor");
}

// All ranks raise; what this one raises is said by the caller.
void refuse(PyCommunicator& self, CallKind kind, const std::string& why, double deadline) {
  const GilReleased released;
  try {
    self.communicator.refuse(kind, why, patience_of(deadline));
  } catch (const Error&) {
    // As it must.
  }
}

// A place that doesn't count on this rank.
std::unique_ptr<ArrayPlace> if_any(nb::handle array, nb::handle layout, bool writes) {
  return array.is_none() ? nullptr : std::make_unique<ArrayPlace>(array, layout, writes);
}
const MessageBuffer& place_in(const std::unique_ptr<ArrayPlace>& array) {
  static const MessageBuffer nothing;
  return array ? array->place : nothing;
}

// Makes what a collective needs. A rank that can't tells the others, who would wait for it.
template <class Make>
auto prepared(PyCommunicator& self, CallKind kind, double deadline, const Make& make) {
  std::string why;
  try {
    return make();
  } catch (nb::python_error& error) {
    why = error.what();
    refuse(self, kind, why, deadline);
    throw;
  } catch (const Error& error) {
    why = error.what();
    refuse(self, kind, why, deadline);
    throw;
  }
}

// What a collective takes on this rank; either may be absent.
struct Operands {
  std::unique_ptr<ArrayPlace> from;
  std::unique_ptr<ArrayPlace> into;
  ReduceOperation operation = ReduceOperation::sum;
};

Operands operands(PyCommunicator& self, CallKind kind, double deadline, nb::handle from,
                  nb::handle into, const std::string& operation = "sum") {
  return prepared(self, kind, deadline, [&] {
    return Operands{if_any(from, nb::none(), false), if_any(into, nb::none(), true),
                    operation_named(operation)};
  });
}

using Collectives = nb::class_<PyCommunicator>;

void bind_collectives(Collectives& comm) {
  const auto a = [](const char* name) { return nb::arg(name); };
  comm.def(
          "barrier",
          [](PyCommunicator& self, double deadline) {
            const GilReleased released;
            self.communicator.barrier(patience_of(deadline));
          },
          a("deadline"))
      .def(
          "bcast",
          [](PyCommunicator& self, nb::handle array, int root, nb::handle layout, double deadline) {
            const auto place = prepared(self, CallKind::bcast, deadline, [&] {
              return std::make_unique<ArrayPlace>(array, layout, self.communicator.rank() != root);
            });
            const GilReleased released;
            self.communicator.broadcast(place->place, root, patience_of(deadline));
          },
          a("array"), a("root"), a("layout").none(), a("deadline"))
      .def(
          "reduce",
          [](PyCommunicator& self, nb::handle from, nb::handle into, const std::string& operation,
             int root, double deadline) {
            const Operands with = operands(self, CallKind::reduce, deadline, from, into, operation);
            const GilReleased released;
            self.communicator.reduce(place_in(with.from), place_in(with.into), with.operation, root,
                                     patience_of(deadline));
          },
          a("sent"), a("received").none(), a("operation"), a("root"), a("deadline"))
      .def(
          "allreduce",
          [](PyCommunicator& self, nb::handle from, nb::handle into, const std::string& operation,
             double deadline) {
            const Operands with =
                operands(self, CallKind::allreduce, deadline, from, into, operation);
            const GilReleased released;
            self.communicator.all_reduce(place_in(with.from), place_in(with.into), with.operation,
                                         patience_of(deadline));
          },
          a("sent"), a("received"), a("operation"), a("deadline"))
      .def(
          "gather",
          [](PyCommunicator& self, nb::handle from, nb::handle into, int root, double deadline) {
            const Operands with = operands(self, CallKind::gather, deadline, from, into);
            const GilReleased released;
            self.communicator.gather(place_in(with.from), place_in(with.into), root,
                                     patience_of(deadline));
          },
          a("sent"), a("received").none(), a("root"), a("deadline"))
      .def(
          "scatter",
          [](PyCommunicator& self, nb::handle from, nb::handle into, int root, double deadline) {
            const Operands with = operands(self, CallKind::scatter, deadline, from, into);
            const GilReleased released;
            self.communicator.scatter(place_in(with.from), place_in(with.into), root,
                                      patience_of(deadline));
          },
          a("sent").none(), a("received"), a("root"), a("deadline"))
      .def(
          "allgather",
          [](PyCommunicator& self, nb::handle from, nb::handle into, double deadline) {
            const Operands with = operands(self, CallKind::allgather, deadline, from, into);
            const GilReleased released;
            self.communicator.all_gather(place_in(with.from), place_in(with.into),
                                         patience_of(deadline));
          },
          a("sent"), a("received"), a("deadline"))
      .def(
          "alltoall",
          [](PyCommunicator& self, nb::handle from, nb::handle into, double deadline) {
            const Operands with = operands(self, CallKind::alltoall, deadline, from, into);
            const GilReleased released;
            self.communicator.all_to_all(place_in(with.from), place_in(with.into),
                                         patience_of(deadline));
          },
          a("sent"), a("received"), a("deadline"))
      .def(
          "split",
          [](PyCommunicator& self, int color, int key, double deadline) {
            std::optional<CommunicatorCore> part;
            {
              const GilReleased released;
              part = self.communicator.split(color, key, patience_of(deadline));
            }
            std::optional<PyCommunicator> made;
            if (part) made.emplace(self.endpoint, std::move(*part));
            return made;
          },
          a("color"), a("key"), a("deadline"))
      .def("shrink", [](PyCommunicator& self) {
        const GilReleased released;
        return PyCommunicator(self.endpoint, self.communicator.shrink());
      });
}

void bind_request(nb::module_& module) {
  nb::class_<MessageStatus>(module, "MessageStatus", "What was received.")
      .def_ro("source", &MessageStatus::source, "The sender's rank.")
      .def_ro("tag", &MessageStatus::tag, "The message's tag.")
      .def_ro("nbytes", &MessageStatus::bytes,
              "Bytes of the message, which may be less than the array's.")
      .def("__repr__", [](const MessageStatus& self) {
        return "Status(source=" + std::to_string(self.source) +
               ", tag=" + std::to_string(self.tag) + ", nbytes=" + std::to_string(self.bytes) + ")";
      });
  nb::class_<PyRequest>(module, "MessageRequest", "A send or a receive that has been started.")
      .def(
          "wait",
          [](const PyRequest& self, double deadline, double passed) {
            const GilReleased released;
            Patience patience = patience_of(deadline);
            const std::chrono::duration<double> before(passed);
            using Clock = std::chrono::steady_clock;
            patience.since = Clock::now() - std::chrono::duration_cast<Clock::duration>(before);
            return self.endpoint->wait(self.transfer, patience);
          },
          nb::arg("deadline"), nb::arg("passed") = 0.0)
      .def("test",
           [](const PyRequest& self) {
             const GilReleased released;
             return self.endpoint->test(self.transfer);
           })
      .def("cancel", [](const PyRequest& self) {
        const GilReleased released;
        return self.endpoint->cancel(self.transfer);
      });
}

// Joins by a function that takes the patience.
template <class Join>
PyCommunicator joined(double deadline, const Join& join) {
  std::shared_ptr<Endpoint> endpoint;
  {
    const GilReleased released;
    endpoint = join(patience_of(deadline));
  }
  return PyCommunicator(without_gil(std::move(endpoint)));
}

PyCommunicator join(const std::string& address, int rank, int size, const std::string& token,
                    double deadline) {
  return joined(deadline, [&](const Patience& patience) {
    return message::join(message::Joining{address, rank, size, message::parse_token(token)},
                         patience);
  });
}

PyCommunicator world(double deadline) {
  return joined(deadline, [](const Patience& patience) {
    return message::join_world(launch_variables(), patience);
  });
}

}  // namespace

std::shared_ptr<MessageLane> lane_of(nb::handle communicator) {
  auto& self = nb::cast<PyCommunicator&>(communicator);
  if (!self.lane) self.lane = std::make_shared<MessageLane>(self.communicator);
  return self.lane;
}

void bind_message(nb::module_& module) {
  bind_request(module);
  Collectives comm(module, "MessageCommunicator", "Ranks that exchange messages.");
  const auto a = [](const char* name) { return nb::arg(name); };
  comm.def_prop_ro("rank", [](const PyCommunicator& self) { return self.communicator.rank(); })
      .def_prop_ro("size", [](const PyCommunicator& self) { return self.communicator.size(); })
      .def("send", &PyCommunicator::send, a("array"), a("dest"), a("tag"), a("layout").none(),
           a("deadline"))
      .def("recv", &PyCommunicator::recv, a("array"), a("source"), a("tag"), a("layout").none(),
           a("deadline"))
      .def("isend", &PyCommunicator::isend, a("array"), a("dest"), a("tag"), a("layout").none())
      .def("irecv", &PyCommunicator::irecv, a("array"), a("source"), a("tag"), a("layout").none())
      .def("sendrecv", &PyCommunicator::sendrecv, a("sent"), a("dest"), a("sendtag"), a("received"),
           a("source"), a("recvtag"), a("send_layout").none(), a("recv_layout").none(),
           a("deadline"))
      .def("probe", &PyCommunicator::probe, a("source"), a("tag"), a("waits"), a("deadline"))
      .def(
          "plan",
          [](const PyCommunicator& self, nb::handle sends, nb::handle receives) {
            return plan_of(self.communicator, sends, receives);
          },
          a("sends"), a("receives"))
      .def("close", &PyCommunicator::close, a("seconds"));
  bind_collectives(comm);
  bind_plan(module);
  module.def("message_join", join, a("address"), a("rank"), a("size"), a("token"), a("deadline"));
  module.def("message_world", world, a("deadline"));
}

}  // namespace quadriga::python
