// SPDX-License-Identifier: BSD-3-Clause
// python/src/machine.cpp: machine descriptions; quadriga.machine reads the rest from the JSON.
#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <quadriga/machine.h>
#include <quadriga/spill_file.h>

#include <string>
#include <tuple>
#include <vector>

#include "bindings.h"
#include "device/inspection.h"
#include "device/topology.h"
#include "gil_gate.h"

namespace quadriga::python {
namespace {

using NodeRow = std::tuple<int, std::size_t, int, std::string>;

std::vector<NodeRow> host_nodes() {
  std::vector<NodeRow> rows;
  for (const Node& node : Machine::host_nodes())
    rows.emplace_back(node.index, node.memory_bytes, node.cores,
                      format_processors(node.processors));
  return rows;
}

std::string inspect_devices() {
  const GilReleased released;
  return inspection_json();
}

}  // namespace

void bind_machine(nb::module_& module) {
  nb::class_<Machine>(module, "Machine", "Devices, memory spaces, links and kernel times.")
      .def_static("from_file", &Machine::from_file, nb::arg("path"))
      .def_static("from_json", &Machine::from_json, nb::arg("text"))
      .def_static("host", &Machine::host)
      .def_static("cuda_absence", &Machine::cuda_absence)
      .def_static("parse", &Machine::parse, nb::arg("devices"))
      .def("to_json", &Machine::to_json)
      .def(
          "with_spill",
          [](const Machine& machine, const std::string& file, bool measures) {
            const GilReleased released;
            return with_spill(machine, file, measures);
          },
          nb::arg("file"), nb::arg("measures"))
      .def("copy_seconds", &Machine::copy_seconds, nb::arg("source"), nb::arg("target"),
           nb::arg("bytes"));
  module.def("host_nodes", host_nodes);
  module.def("inspect_devices", inspect_devices);
}

}  // namespace quadriga::python
