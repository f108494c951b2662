// SPDX-License-Identifier: BSD-3-Clause
// python/src/py_rerun.cpp: the tasks of a trace on another engine; quadriga.report.rerun wraps it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.h"
#include "engine/rerun.h"
#include "gil_gate.h"
#include "py_engine.h"

namespace quadriga::python {
namespace {

using DataTuple = std::tuple<std::int64_t, std::int64_t, std::int64_t, DType, bool>;
using CostTuple = std::tuple<std::string, double, double>;
/// Number, name, operands, cost, seconds, priority, owner, whether on the host only, what it
/// follows, which data are final then, and bytes of workspace.
using TaskTuple = std::tuple<std::uint64_t, std::string, std::vector<std::pair<std::uint32_t, int>>,
                             std::optional<CostTuple>, double, int, std::optional<DeviceId>, bool,
                             std::vector<std::uint64_t>, std::vector<std::uint32_t>, std::uint64_t>;

/// Keeps the engine.
class PyRerun {
 public:
  PyRerun(const PyEngine& engine, const std::vector<DataTuple>& data) : state_(engine.state()) {
    std::vector<RecordedData> kinds;
    for (const auto& [rows, cols, ld, dtype, homed] : data)
      kinds.push_back({rows, cols, ld, dtype, homed});
    rerun_ = std::make_unique<Rerun>(state_->engine(), std::move(kinds));
  }
  ~PyRerun() {
    const GilReleased released;
    rerun_.reset();
  }
  PyRerun(const PyRerun&) = delete;
  PyRerun& operator=(const PyRerun&) = delete;

  void submit(const std::vector<TaskTuple>& tasks) {
    std::vector<RecordedTask> recorded;
    for (const auto& [number, name, operands, cost, seconds, priority, owner, host, after, final,
                      workspace] : tasks) {
      RecordedTask task{name, {}, seconds};
      task.submission.task = number;
      for (const auto& [data, access] : operands)
        task.submission.operands.push_back({data, static_cast<Access>(access)});
      if (cost) {
        std::tie(task.submission.kernel, task.submission.order, task.submission.volume) = *cost;
      }
      task.submission.priority = priority;
      task.submission.owner = owner.value_or(no_device);
      task.submission.host_only = host;
      task.submission.after = after;
      task.submission.final = final;
      task.submission.workspace = workspace;
      recorded.push_back(std::move(task));
    }
    const GilReleased released;
    rerun_->submit(recorded);
  }

 private:
  std::shared_ptr<EngineState> state_;
  std::unique_ptr<Rerun> rerun_;
};

}  // namespace

void bind_rerun(nb::module_& module) {
  nb::class_<PyRerun>(module, "Rerun", "Submits the tasks of a trace again.")
      .def(nb::init<const PyEngine&, const std::vector<DataTuple>&>(), nb::arg("engine"),
           nb::arg("data"))
      .def("submit", &PyRerun::submit, nb::arg("tasks"));
}

}  // namespace quadriga::python
