// SPDX-License-Identifier: BSD-3-Clause
// python/src/engine.cpp: the engine, its data and its futures; quadriga.engine wraps them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>
#include <quadriga/engine.h>
#include <quadriga/policy.h>

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/process.h"
#include "bindings.h"
#include "engine/engine_access.h"
#include "engine/guests.h"
#include "engine/message_task.h"
#include "engine/message_tasks.h"
#include "engine/occupied.h"
#include "engine/on_host.h"
#include "gil_gate.h"
#include "py_codelet.h"
#include "py_engine.h"

namespace quadriga::python {
namespace {

PyEngine make_engine(const std::string& devices, const std::string& policy, std::size_t window,
                     bool virtual_clock, bool compute, bool protect, std::uint64_t seed, bool trace,
                     std::size_t host_memory, const std::string& spill, std::size_t renaming,
                     std::optional<bool> reproducible, const std::optional<Machine>& machine,
                     const std::optional<Machine>& believed) {
  EngineOptions options;
  options.devices = devices;
  options.policy = policy;
  options.window = window;
  options.virtual_clock = virtual_clock;
  options.compute = compute;
  options.protect = protect;
  options.seed = seed;
  options.trace = trace;
  options.host_memory = host_memory;
  options.spill = spill;
  options.renaming_bytes = renaming;
  options.reproducible = reproducible;
  options.machine = machine;
  options.believed = believed;
  const GilReleased released;
  return PyEngine(std::make_shared<EngineState>(std::move(options)));
}

std::vector<std::pair<std::string, std::string>> registered_policies() {
  std::vector<std::pair<std::string, std::string>> found;
  for (PolicyInfo& each : policies()) found.emplace_back(std::move(each.name), each.help);
  return found;
}

Data add(PyEngine& self, std::uintptr_t address, std::int64_t rows, std::int64_t cols,
         std::int64_t ld, DType dtype, bool resident) {
  const GilReleased released;
  return self.engine().data(reinterpret_cast<void*>(address), rows, cols, ld, dtype,
                            {.resident = resident});
}

Data add_on_device(PyEngine& self, DeviceId device, std::uintptr_t address, std::int64_t rows,
                   std::int64_t cols, std::int64_t ld, DType dtype, bool resident) {
  const GilReleased released;
  return self.engine().data(device, reinterpret_cast<void*>(address), rows, cols, ld, dtype,
                            {.resident = resident});
}

/// None: the host's memory.
std::optional<DeviceId> device_of(const PyEngine& self, std::uintptr_t address) {
  const DeviceId device = self.engine().device_of(reinterpret_cast<const void*>(address));
  return device == no_device ? std::nullopt : std::optional(device);
}

Data add_homeless(PyEngine& self, std::int64_t rows, std::int64_t cols, DType dtype, bool keep) {
  return self.engine().temporary(rows, cols, dtype, DataOptions{keep});
}

/// A mode's name is mostly the very string of quadriga.data.
Access access_of(nb::handle name) {
  static const std::array<std::pair<nb::handle, Access>, 5> modes{{
      {interned("read"), Access::read},
      {interned("write"), Access::write},
      {interned("update"), Access::update},
      {interned("commute"), Access::commute},
      {interned("reduce"), Access::reduce},
  }};
  for (const auto& [mode, access] : modes)
    if (mode.is(name)) return access;
  for (const auto& [mode, access] : modes)
    if (mode.equal(name)) return access;
  fail(Errc::invalid_argument, "no such mode of access");
}

/// Of a record: its places and how they are accessed.
std::vector<Operand> operands_of(const TaskRecord& record) {
  static const nb::handle core_name = interned("core");
  const Py_ssize_t count = PyTuple_GET_SIZE(record.places);
  std::vector<Operand> operands;
  operands.reserve(static_cast<std::size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    const nb::handle place = PyTuple_GET_ITEM(record.places, i);
    operands.push_back(
        {nb::cast<Data>(place.attr(core_name)), access_of(PyTuple_GET_ITEM(record.access, i))});
  }
  return operands;
}

/// The task is in its record before Python runs again, so that no interrupt parts the two.
void submit(PyEngine& self, const PyCodelet& codelet, nb::handle object, int priority,
            DeviceId device, const nb::typed<nb::list, Future>& after) {
  TaskRecord& record = record_of(object);
  const std::vector<Operand> operands = operands_of(record);
  std::vector<Future> followed;
  for (const nb::handle each : after) followed.push_back(nb::cast<Future>(each));
  const BodyParams params = params_of(record);
  nb::object future = nb::cast(Future{});
  auto state = self.state();
  wait_alone(*state);
  {
    std::optional<GilReleased> released;
    if (is_turn_of_others() || !EngineAccess::has_room(state->engine())) released.emplace();
    const Submitting submitting(std::move(state));
    guest_rests = true;  // a handler of signals runs in this thread
    // Python waits for tasks of other engines (others.py), where bodies may run meanwhile.
    *nb::inst_ptr<Future>(future) = EngineAccess::submit(
        submitting.engine(), codelet.codelet, operands, std::as_bytes(std::span(&params, 1)),
        {.priority = priority, .device = device, .owner = no_device, .after = followed}, nullptr);
    if (released) let_bodies_run();
  }
  Py_XSETREF(record.core, future.release().ptr());
}

/// Removes the data of a deque of pairs (data, array), which it empties; the arrays are held until
/// then. Brings content home, which takes time, so that it is open to signals; the pairs leave the
/// deque only once the work has begun, which no signal ends.
void remove(PyEngine& self, const nb::object& retired) {
  const auto state = self.state();
  auto held = std::make_shared<Keep>();
  held->add(retired);
  state->removing().fetch_add(1);
  const std::shared_ptr<void> removing(nullptr, [state](void*) { state->removing().fetch_sub(1); });
  const auto work = [state, removing, retired = retired.ptr(), arrays = held.get()] {
    std::vector<Data> leaving;
    {
      const GilHere gil;
      if (!gil) return;
      while (PyObject_IsTrue(retired) == 1) {
        nb::object pair = nb::handle(retired).attr("popleft")();
        leaving.push_back(nb::cast<Data>(pair[0]));
        arrays->add(std::move(pair));
      }
    }
    state->engine().remove(leaving);
  };
  block(state, {work, std::move(held), nullptr, nb::none()});
}

/// `look` is called with `record` from time to time.
void wait_task(PyEngine& self, const Future& task, double seconds, const nb::object& look,
               const nb::object& record) {
  const auto state = self.state();
  if (state->engine().done(task)) {  // says how it ended, whatever the clock and whoever waits
    self.without_gil([&](Engine& e) { wait_for_end(e, task, 0); });
    return;
  }
  block_in_slices(
      state, seconds, [task](Engine& e, double s) { wait_for_end(e, task, s); },
      calling(look, record));
}

void bring_ended_home(PyEngine& self, double seconds) {
  const auto state = self.state();
  if (!has_lingering(state->engine())) return;
  // Not in slices: each call takes in what has ended meanwhile, and might never be done.
  const auto work = [state, seconds] { quadriga::bring_ended_home(state->engine(), seconds); };
  block(state, {work, nullptr, nullptr, nb::none()});
}

void cancel(PyEngine& self) {
  const auto state = self.state();
  block(state, {[state] { state->engine().cancel(); }, nullptr, nullptr, nb::none()});
}

void end(PyEngine& self) {
  const auto state = self.state();
  block(state, {[state] { state->end(); }, nullptr, nullptr, nb::none()});
}

void bind_waits(nb::class_<PyEngine>& engine) {
  engine
      .def(
          "wait",
          [](PyEngine& self, double seconds, const nb::object& look) {
            block_in_slices(
                self.state(), seconds, [](Engine& e, double s) { e.wait(s); },
                calling(look, nb::none()));
          },
          nb::arg("seconds"), nb::arg("look") = nb::none())
      .def(
          "wait_data",
          [](PyEngine& self, const Data& data, double seconds, const nb::object& look,
             const nb::object& awaited) {
            block_in_slices(
                self.state(), seconds, [data](Engine& e, double s) { e.wait(data, s); },
                calling(look, awaited));
          },
          nb::arg("data"), nb::arg("seconds"), nb::arg("look") = nb::none(),
          nb::arg("awaited") = nb::none())
      .def("wait_task", wait_task, nb::arg("task"), nb::arg("seconds"),
           nb::arg("look") = nb::none(), nb::arg("record") = nb::none())
      .def("bring_ended_home", bring_ended_home, nb::arg("seconds"))
      .def("cancel", cancel)
      .def("end", end)
      .def("close", &PyEngine::close)
      .def("close_later", &PyEngine::close_later, nb::arg("kept"));
}

void bind_views(nb::class_<PyEngine>& engine) {
  engine.def("machine", [](PyEngine& self) { return self.engine().machine(); })
      .def("host_only", [](PyEngine& self) { return self.engine().host_only(); })
      .def("window", [](PyEngine& self) { return self.engine().options().window; })
      .def("policy", [](PyEngine& self) { return self.engine().options().policy; })
      .def("now", [](PyEngine& self) { return self.engine().now(); })
      .def("counters",
           [](PyEngine& self) {
             auto dict = counters_as_dict(self.without_gil([](Engine& e) { return e.counters(); }));
             dict["messages"] = messages_as_dict(
                 self.without_gil([](Engine& e) { return MessageTasks::counted(e); }));
             return dict;
           })
      .def("reset_counters",
           [](PyEngine& self) { self.without_gil([](Engine& e) { e.reset_counters(); }); })
      .def("status",
           [](PyEngine& self) { return self.without_gil([](Engine& e) { return e.status(); }); })
      .def("trace_json", [](PyEngine& self) {
        return self.without_gil([](Engine& e) { return e.trace_json(); });
      });
}

}  // namespace

void bind_engine(nb::module_& module) {
  module.def("refuse_for_good", EngineState::refuse_for_good);
  module.def("policies", registered_policies, "(name, help) of each, by name.");
  nb::class_<Data>(module, "Data", "A registered tile.")
      .def("__eq__",
           [](const Data& a, const nb::object& b) {
             return nb::isinstance<Data>(b) && a == nb::cast<const Data&>(b);
           })
      .def("__hash__",
           [](const Data& data) { return std::hash<void*>()(EngineAccess::datum(data)); });
  nb::class_<Future>(module, "Future", "A task that was submitted.").def_prop_ro("id", &Future::id);
  nb::class_<PyEngine> engine(module, "Engine", "Runs tasks on the devices of a machine.");
  engine
      .def(nb::new_(&make_engine), nb::arg("devices"), nb::arg("policy"), nb::arg("window"),
           nb::arg("virtual_clock"), nb::arg("compute"), nb::arg("protect"), nb::arg("seed"),
           nb::arg("trace"), nb::arg("host_memory"), nb::arg("spill"), nb::arg("renaming"),
           nb::arg("reproducible").none(), nb::arg("machine").none(), nb::arg("believed").none())
      .def("add", add, nb::arg("address"), nb::arg("rows"), nb::arg("cols"), nb::arg("ld"),
           nb::arg("dtype"), nb::arg("resident"))
      .def("add_on_device", add_on_device, nb::arg("device"), nb::arg("address"), nb::arg("rows"),
           nb::arg("cols"), nb::arg("ld"), nb::arg("dtype"), nb::arg("resident"))
      .def("device_of", device_of, nb::arg("address"))
      .def(
          "synchronize",
          [](PyEngine& self, DeviceId device, std::uintptr_t stream) {
            self.without_gil([=](Engine& e) { e.synchronize(device, stream); });
          },
          nb::arg("device"), nb::arg("stream"))
      .def(
          "follow",
          [](PyEngine& self, const Data& data, std::uintptr_t stream) {
            self.without_gil([=](Engine& e) { e.follow(data, stream); });
          },
          nb::arg("data"), nb::arg("stream"))
      .def("add_homeless", add_homeless, nb::arg("rows"), nb::arg("cols"), nb::arg("dtype"),
           nb::arg("keep"))
      .def("inside_own_body", [](PyEngine& self) { return runs_here(self.engine()); })
      .def("host_memory", [](PyEngine& self) { return self.engine().options().host_memory; })
      .def("remove", remove, nb::arg("retired"))
      .def("removing", [](PyEngine& self) { return self.state()->removing().load(); })
      .def("submit", submit, nb::arg("codelet"), nb::arg("record"), nb::arg("priority"),
           nb::arg("device"), nb::arg("after"))
      .def(
          "done", [](PyEngine& self, const Future& task) { return self.engine().done(task); },
          nb::arg("task"))
      .def(
          "section",
          [](PyEngine& self, std::string name, Nanoseconds begin, Nanoseconds end) {
            EngineAccess::section(self.engine(), std::move(name), begin, end);
          },
          nb::arg("name"), nb::arg("begin"), nb::arg("end"))
      .def(
          "failed",
          [](PyEngine& self, const Future& task) {
            return EngineAccess::failed(self.engine(), task);
          },
          nb::arg("task"))
      .def(
          "final",
          [](PyEngine& self, const Data& data) {
            self.without_gil([&](Engine& e) { e.final(data); });
          },
          nb::arg("data"))
      .def(
          "evict",
          [](PyEngine& self, const Data& data) {
            self.without_gil([&](Engine& e) { e.evict(data); });
          },
          nb::arg("data"));
  bind_host_access(module, engine);
  bind_waits(engine);
  bind_views(engine);
}

}  // namespace quadriga::python
