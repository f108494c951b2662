// SPDX-License-Identifier: BSD-3-Clause
// python/src/machine.cpp: machine descriptions; quadriga.machine reads the rest from the JSON.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <quadriga/machine.h>

#include "bindings.h"

namespace quadriga::python {

void bind_machine(nb::module_& module) {
  nb::class_<Machine>(module, "Machine", "Devices, memory spaces, links and kernel times.")
      .def_static("from_file", &Machine::from_file, nb::arg("path"))
      .def_static("from_json", &Machine::from_json, nb::arg("text"))
      .def_static("host", &Machine::host)
      .def_static("cuda_absence", &Machine::cuda_absence)
      .def_static("parse", &Machine::parse, nb::arg("devices"))
      .def("to_json", &Machine::to_json)
      .def("copy_seconds", &Machine::copy_seconds, nb::arg("source"), nb::arg("target"),
           nb::arg("bytes"));
}

}  // namespace quadriga::python
