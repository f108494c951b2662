// SPDX-License-Identifier: BSD-3-Clause
// python/src/py_message.cpp: communicators and requests.
//
// Invariants
//   1. No call enters the library with the GIL: its lock is never waited for by who holds the GIL.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <quadriga/error.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/config.h"
#include "bindings.h"
#include "gil_gate.h"
#include "message/communicator.h"
#include "message/join.h"
#include "message/nccl/library.h"
#include "message/start.h"
#include "py_array_place.h"
#include "py_devices.h"
#include "py_message.h"
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
  nb::class_<PyRequest>(module, "MessageRequest",
                        "A message or a collective that has been started.")
      .def(
          "wait",
          [](const PyRequest& self, double deadline, double passed) {
            const GilReleased released;
            Patience patience = patience_of(deadline);
            const std::chrono::duration<double> before(passed);
            using Clock = std::chrono::steady_clock;
            patience.since = Clock::now() - std::chrono::duration_cast<Clock::duration>(before);
            if (!self.collective) return self.endpoint->wait(self.transfer, patience);
            self.collective->wait(patience);
            return MessageStatus{};
          },
          nb::arg("deadline"), nb::arg("passed") = 0.0)
      .def("test",
           [](const PyRequest& self) {
             const GilReleased released;
             return self.collective ? self.collective->test() : self.endpoint->test(self.transfer);
           })
      .def("cancel", [](const PyRequest& self) {
        const GilReleased released;
        return self.transfer && self.endpoint->cancel(self.transfer);
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

std::tuple<std::string, std::string, std::string> nccl_found() {
  const GilReleased released;
  const message::NcclLibrary& library = message::NcclLibrary::of_settings();
  return {library.version_text(), library.name(), library.absence()};
}

}  // namespace

std::shared_ptr<MessageLane> lane_of(nb::handle communicator) {
  auto& self = nb::cast<PyCommunicator&>(communicator);
  if (!self.lane) self.lane = std::make_shared<MessageLane>(self.communicator);
  return self.lane;
}

void bind_message(nb::module_& module) {
  bind_request(module);
  CommunicatorClass comm(module, "MessageCommunicator", "Ranks that exchange messages.");
  const auto a = [](const char* name) { return nb::arg(name); };
  comm.def_prop_ro("rank", [](const PyCommunicator& self) { return self.communicator.rank(); })
      .def_prop_ro("size", [](const PyCommunicator& self) { return self.communicator.size(); })
      .def("send", &PyCommunicator::send, a("array").none(), a("dest").none(), a("tag").none(),
           a("layout").none(), a("deadline"), a("stream").none())
      .def("recv", &PyCommunicator::recv, a("array").none(), a("source").none(), a("tag").none(),
           a("layout").none(), a("deadline"), a("stream").none())
      .def("isend", &PyCommunicator::isend, a("array").none(), a("dest").none(), a("tag").none(),
           a("layout").none(), a("stream").none())
      .def("irecv", &PyCommunicator::irecv, a("array").none(), a("source").none(), a("tag").none(),
           a("layout").none(), a("stream").none())
      .def("sendrecv", &PyCommunicator::sendrecv, a("sent").none(), a("dest").none(),
           a("sendtag").none(), a("received").none(), a("source").none(), a("recvtag").none(),
           a("send_layout").none(), a("recv_layout").none(), a("deadline"), a("stream").none())
      .def("probe", &PyCommunicator::probe, a("source").none(), a("tag").none(), a("waits"),
           a("deadline"))
      .def(
          "plan",
          [](const PyCommunicator& self, nb::handle sends, nb::handle receives) {
            return plan_of(self.communicator, sends, receives);
          },
          a("sends"), a("receives"))
      .def("predict", &PyCommunicator::predict, a("array").none(), a("dest").none(),
           a("layout").none(), a("into").none())
      .def("paths", &PyCommunicator::paths)
      .def("close", &PyCommunicator::close, a("seconds"));
  bind_collectives(comm);
  bind_plan(module);
  bind_devices(module);
  module.def("message_join", join, a("address"), a("rank"), a("size"), a("token"), a("deadline"));
  module.def("message_world", world, a("deadline"));
  module.def(
      "nccl_places",
      [](const std::vector<std::string>& files) { message::NcclLibrary::add_places(files); },
      a("files"));
  module.def("nccl_found", nccl_found, "NCCL's version and file, or why it can't be used.");
}

}  // namespace quadriga::python
