// SPDX-License-Identifier: BSD-3-Clause
// python/src/py_plan.cpp: plans, whose arrays stay exported as long as they live.
#include "py_plan.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <vector>

#include "gil_gate.h"
#include "py_array_place.h"
#include "whole.h"

namespace quadriga::python {
namespace {

using message::PlannedMessage;
using ArrayPlaces = std::vector<std::shared_ptr<ArrayPlace>>;

std::vector<PlannedMessage> planned(nb::handle messages, bool receives, ArrayPlaces& places) {
  std::vector<PlannedMessage> made;
  for (const nb::handle each : messages) {
    const auto message = nb::cast<nb::tuple>(each);
    places.push_back(shared_place(message[0], message[3], receives));
    made.push_back({places.back()->place, whole("rank", message[1]), whole("tag", message[2]),
                    places.back()->stream});
  }
  return made;
}

}  // namespace

PyPlan plan_of(const message::CommunicatorCore& communicator, nb::handle sends,
               nb::handle receives) {
  const auto places = std::make_shared<ArrayPlaces>();
  const auto leaving = planned(sends, false, *places);
  const auto arriving = planned(receives, true, *places);
  return {communicator.plan(leaving, arriving, places)};
}

void bind_plan(nb::module_& module) {
  nb::class_<PyPlan>(module, "MessagePlan", "An exchange that is set up once.")
      .def("start",
           [](const PyPlan& self) {
             const GilReleased released;
             self.transfers.start();
           })
      .def(
          "wait",
          [](const PyPlan& self, double deadline) {
            const GilReleased released;
            self.transfers.wait(patience_of(deadline));
          },
          nb::arg("deadline"))
      .def("test",
           [](const PyPlan& self) {
             const GilReleased released;
             return self.transfers.test();
           })
      .def("cancel",
           [](const PyPlan& self) {
             const GilReleased released;
             return self.transfers.cancel();
           })
      .def("received", [](const PyPlan& self) { return self.transfers.received(); });
}

}  // namespace quadriga::python
