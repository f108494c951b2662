// SPDX-License-Identifier: BSD-3-Clause
// python/src/py_message_tasks.cpp: messages as tasks: submitting, withdrawing, what was received.
#include "py_message_tasks.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.h"
#include "engine/message_tasks.h"
#include "gil_gate.h"
#include "py_engine.h"

namespace quadriga::python {
namespace {

using message::CallKind;

struct PyMessageTask {
  MessageTaskPtr task;

  std::optional<message::MessageStatus> status() const {
    if (!task->has_status) return std::nullopt;
    return task->status;
  }
  bool refuse(long long number, const std::string& why, NamedTasks* named) const {
    const auto error = std::make_exception_ptr(
        BodyFailure(number, why, named == nullptr ? nullptr : named->hold(number)));
    const GilReleased released;
    return MessageTasks::refuse(task, error);
  }
};

CallKind kind_named(std::string_view name) {
  for (int kind = 0; kind <= static_cast<int>(CallKind::alltoall); ++kind)
    if (message::name(static_cast<CallKind>(kind)) == name) return static_cast<CallKind>(kind);
  fail(Errc::invalid_argument, "no message is called '" + std::string(name) + "'");
}

/// Element, shape, strides in bytes, and the index of the leading dimension, -1: none.
using ShapeTuple =
    std::tuple<message::Layout, std::vector<std::int64_t>, std::vector<std::int64_t>, int>;
/// Kind, peer, tag, operation, seconds.
using CallTuple = std::tuple<std::string, int, int, std::string, double>;

/// The task is in its record before Python runs again, so that no interrupt parts the two.
PyMessageTask submit(PyEngine& self, nb::handle communicator, const CallTuple& given,
                     const std::vector<Data>& data, const std::vector<ShapeTuple>& given_shapes,
                     int from, int into, nb::handle record, int priority) {
  const MessageCall call{kind_named(std::get<0>(given)), std::get<1>(given), std::get<2>(given),
                         message::reduce_operation_of(std::get<3>(given)), std::get<4>(given)};
  std::vector<MessageShape> shapes;
  for (const auto& [element, shape, strides, leading] : given_shapes)
    shapes.push_back({element, shape, strides, leading});
  const auto lane = lane_of(communicator);
  const nb::object future = nb::cast(Future{});
  auto state = self.state();
  wait_alone(*state);
  PyMessageTask made;
  {
    const GilReleased released;
    const Submitting submitting(std::move(state));
    MessageTasks& tasks = MessageTasks::of(submitting.engine());
    made.task = tasks.make(lane, call, std::move(shapes), from, into);
    *nb::inst_ptr<Future>(future) = tasks.submit(made.task, data, {.priority = priority});
  }
  record.attr("core") = future;
  return made;
}

}  // namespace

nb::typed<nb::dict, nb::str, nb::any> messages_as_dict(const MessageCounters& counters) {
  nb::dict dict;
  dict["sent"] = counters.sent;
  dict["received"] = counters.received;
  dict["bytes_sent"] = counters.bytes_sent;
  dict["bytes_received"] = counters.bytes_received;
  dict["bytes_direct"] = counters.bytes_direct;
  dict["collectives"] = counters.collectives;
  return dict;
}

void bind_message_tasks(nb::module_& module) {
  nb::class_<PyMessageTask>(module, "MessageTask", "A message that is a task.")
      .def("status", &PyMessageTask::status)
      .def("refuse", &PyMessageTask::refuse, nb::arg("number"), nb::arg("why"),
           nb::arg("named").none());
  module.def("submit_message", submit, nb::arg("engine"), nb::arg("communicator"), nb::arg("call"),
             nb::arg("data"), nb::arg("shapes"), nb::arg("sent"), nb::arg("received"),
             nb::arg("record"), nb::arg("priority"));
}

}  // namespace quadriga::python
