// SPDX-License-Identifier: BSD-3-Clause
// python/src/host_access.cpp: the host's access to data and to memory; quadriga.data wraps it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>
#include <quadriga/engine.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "engine/engine_access.h"
#include "engine/on_host.h"
#include "gil_gate.h"
#include "graph/failures.h"
#include "py_engine.h"

namespace quadriga::python {
namespace {

struct PyHostAccess {
  HostAccess access;

  void release() {
    const GilReleased released;
    access.release();
  }
};

/// `look` is called with `awaited` between slices, see block_in_slices().
PyHostAccess on_host(PyEngine& self, const Data& data, Access access, double seconds,
                     const nb::object& look, const nb::object& awaited) {
  auto found = std::make_shared<HostAccess>();
  block_in_slices(
      self.state(), seconds,
      [found, data, access](Engine& e, double left) { *found = e.on_host(data, access, left); },
      calling(look, awaited));
  return {std::move(*found)};
}

/// Waits until the host may touch what is registered from an address on, and takes it off the
/// devices if it is to be written; false if nothing is registered there.
bool settle(PyEngine& self, std::uintptr_t address, std::size_t bytes, bool writes,
            const nb::object& look) {
  const HeldRegion region{{address, bytes, 1, 0}, writes ? Access::update : Access::read};
  if (!is_registered(self.engine(), region.region)) return false;
  const nb::object awaited = nb::make_tuple(address, bytes, writes);
  block_in_slices(
      self.state(), -1,
      [region](Engine& e, double left) { hold_regions(e, std::span(&region, 1), left).release(); },
      calling(look, awaited));
  return true;
}

/// The same to read it for a later task. Where a task failed that should have written it, nothing
/// is thrown, and nobody has been told: its number and why.
std::optional<std::pair<std::uint64_t, std::string>> settle_for_task(PyEngine& self,
                                                                     std::uintptr_t address,
                                                                     std::size_t bytes,
                                                                     const nb::object& look) {
  const HeldRegion region{{address, bytes, 1, 0}, Access::read};
  if (!is_registered(self.engine(), region.region)) return std::nullopt;
  const nb::object awaited = nb::make_tuple(address, bytes, false);
  try {
    block_in_slices(
        self.state(), -1,
        [region](Engine& e, double left) {
          hold_regions(e, std::span(&region, 1), left, true).release();
        },
        calling(look, awaited));
  } catch (const LacksResult& lost) {
    return std::pair(lost.task(), EngineAccess::why_failed(self.engine(), lost.task()));
  }
  return std::nullopt;
}

bool is_home(PyEngine& self, const Data& data) {
  return self.without_gil([&](Engine& e) { return is_home(e, data); });
}

}  // namespace

void bind_host_access(nb::module_& module, nb::class_<PyEngine>& engine) {
  nb::class_<PyHostAccess>(module, "HostAccess", "The host's access to data.")
      .def("release", &PyHostAccess::release);
  engine
      .def("on_host", on_host, nb::arg("data"), nb::arg("access"), nb::arg("seconds"),
           nb::arg("look") = nb::none(), nb::arg("awaited") = nb::none())
      .def(
          "has_names",
          [](PyEngine& self, const Data& data) { return has_names(self.engine(), data); },
          nb::arg("data"))
      .def(
          "newest_writer",
          [](PyEngine& self, const Data& data) { return newest_writer(self.engine(), data); },
          nb::arg("data"))
      .def(
          "before_host",
          [](PyEngine& self, const Data& data, Access access) {
            return before_host(self.engine(), data, access);
          },
          nb::arg("data"), nb::arg("access"))
      .def("settle", settle, nb::arg("address"), nb::arg("bytes"), nb::arg("writes"),
           nb::arg("look") = nb::none())
      .def("settle_for_task", settle_for_task, nb::arg("address"), nb::arg("bytes"),
           nb::arg("look") = nb::none())
      .def("is_home", is_home, nb::arg("data"));
}

}  // namespace quadriga::python
