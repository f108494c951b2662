// SPDX-License-Identifier: BSD-3-Clause
// python/src/py_message.cpp: communicators, requests, and arrays as places of messages.
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
#include "base/thread.h"
#include "bindings.h"
#include "gil_gate.h"
#include "message/join.h"
#include "message/start.h"
#include "py_message.h"

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

std::optional<ElementType> type_of(const char* format, Py_ssize_t item) {
  if (format == nullptr) return ElementType::uint8;
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  const bool is_complex = *format == 'Z';
  if (is_complex) ++format;
  if (format[0] == '\0' || format[1] != '\0') return std::nullopt;
  if (is_complex) {
    if (*format == 'f') return ElementType::complex64;
    return *format == 'd' ? std::optional(ElementType::complex128) : std::nullopt;
  }
  constexpr std::array integers{ElementType::int8, ElementType::int16, ElementType::int32,
                                ElementType::int64};
  constexpr std::array naturals{ElementType::uint8, ElementType::uint16, ElementType::uint32,
                                ElementType::uint64};
  const std::size_t width = item == 1 ? 0 : item == 2 ? 1 : item == 4 ? 2 : 3;
  if (std::strchr("bhilq", *format)) return integers[width];
  if (std::strchr("BHILQ", *format)) return naturals[width];
  switch (*format) {
    case '?':
      return ElementType::boolean;
    case 'e':
      return ElementType::float16;
    case 'f':
      return ElementType::float32;
    case 'd':
      return ElementType::float64;
    default:
      return std::nullopt;
  }
}

// The last to hold it may be the thread that moves messages, which mustn't wait for the GIL: one
// that Python doesn't know leaves it to a thread of its own.
void let_go(ArrayPlace* place) noexcept {
  if (Py_IsInitialized() != 0 && PyGILState_GetThisThreadState() == nullptr) {
    try {
      start_thread("quadriga freer", [place] { delete place; }).detach();
      return;
    } catch (const std::exception&) {
      // It waits, then.
    }
  }
  delete place;
}

void check_signals() {
  const GilHere gil;
  if (gil && PyErr_CheckSignals() != 0) throw nb::python_error();
}

// The last one to hold an endpoint ends it, which waits for its thread: without the GIL.
std::shared_ptr<Endpoint> without_gil(std::shared_ptr<Endpoint> endpoint) {
  Endpoint* const at = endpoint.get();
  return {at, [held = std::move(endpoint)](Endpoint*) mutable {
            std::optional<GilReleased> released;
            if (Py_IsInitialized() != 0 && PyGILState_Check() != 0) released.emplace();
            held.reset();
          }};
}

}  // namespace

std::optional<MessageBuffer> Export::place() const {
  const auto type = type_of(view_.format, view_.itemsize);
  if (!type || static_cast<std::size_t>(view_.itemsize) != message::size_of(*type))
    return std::nullopt;
  auto* const data = static_cast<std::byte*>(view_.buf);
  if (PyBuffer_IsContiguous(&view_, 'C'))
    return MessageBuffer{message::contiguous_layout(view_.len / view_.itemsize, *type), data};
  const auto rank = static_cast<std::size_t>(view_.ndim);
  std::vector<std::int64_t> shape(view_.shape, view_.shape + rank);
  std::vector<std::int64_t> strides(view_.strides, view_.strides + rank);
  return MessageBuffer{Layout::view(shape, strides, *type), data};
}

ArrayPlace::ArrayPlace(nb::handle array, nb::handle layout, bool writes) {
  if (layout.is_none() && exported.open(array.ptr(), writes)) {
    if (auto found = exported.place()) {
      place = std::move(*found);
      return;
    }
  }
  const nb::object described =
      nb::module_::import_("quadriga.message.places").attr("described")(array, layout, writes);
  place.data = reinterpret_cast<std::byte*>(nb::cast<std::uintptr_t>(described[0]));
  place.layout = nb::cast<Layout>(described[1]);
  kept = nb::object(described[2]);
}

ArrayPlace::~ArrayPlace() {
  if (!kept.is_valid()) return;
  const GilHere gil;
  if (gil)
    kept.reset();
  else
    static_cast<void>(kept.release());
}

std::shared_ptr<ArrayPlace> shared_place(nb::handle array, nb::handle layout, bool writes) {
  return {new ArrayPlace(array, layout, writes), let_go};
}

Patience patience_of(double seconds) {
  require(!std::isnan(seconds), "deadline isn't a number");
  return {seconds, check_signals};
}

namespace {

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

void bind_message(nb::module_& module) {
  bind_request(module);
  CommunicatorClass comm(module, "MessageCommunicator", "Ranks that exchange messages.");
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
      .def("close", &PyCommunicator::close, a("seconds"));
  bind_collectives(comm);
  module.def("message_join", join, a("address"), a("rank"), a("size"), a("token"), a("deadline"));
  module.def("message_world", world, a("deadline"));
}

}  // namespace quadriga::python
