// SPDX-License-Identifier: BSD-3-Clause
// python/src/py_codelet.cpp: codelets with Python bodies: the GIL is held around the body,
// never else.
//
// Bodies run on threads of the engine that may wait for the GIL: a CPU stream's, or the one that
// calls CUDA variants that wait. Kernels of CUDA sources are launched by the driver itself.
#include "py_codelet.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <quadriga/error.h>

#include <memory>
#include <optional>
#include <utility>

#include "bindings.h"
#include "body.h"
#include "graph/failures.h"
#include "one_blas_thread.h"
#include "py_division.h"

namespace quadriga::python {
namespace {

thread_local bool is_inside = false;

/// Ends the body as its record says: by None, or by the task whose result it lacks.
void end_as(const nb::object& lacking) {
  if (!lacking.is_none()) throw LacksResult(nb::cast<std::uint64_t>(lacking));
}

/// While it lives, the record's body may run in this thread.
class RunsHere {
 public:
  explicit RunsHere(TaskRecord& record) noexcept : record_(record) {}
  ~RunsHere() { record_.thread = 0; }
  RunsHere(const RunsHere&) = delete;
  RunsHere& operator=(const RunsHere&) = delete;

 private:
  TaskRecord& record_;
};

/// Calls the record's run() with the operands' places.
void call_record(const Arguments& arguments) {
  const auto params = arguments.param<BodyParams>();
  const InsideBody inside(params.number);
  const RunsHere here(*params.record);
  try {
    const OneBlasThread one_thread;
    if (!run_in_place(*params.record, arguments))
      end_as(nb::handle(&params.record->ob_base).attr("run")(places(arguments)));
  } catch (nb::python_error& error) {
    throw BodyFailure(params.number, describe(error), held_name(*params.record));
  }
}

/// The virtual clock drives devices of every kind, and has streams of none.
void check_stream(const Arguments& arguments) {
  if (arguments.stream == nullptr)
    fail(Errc::unavailable, "CUDA variants run on CUDA devices only, not under a virtual clock");
}

/// Calls the record's run_on_device() with the operands' places, the stream and its device.
void call_record_on_device(const Arguments& arguments) {
  check_stream(arguments);
  const auto params = arguments.param<BodyParams>();
  const int device = current_cuda_device();
  const InsideBody inside(params.number);
  const RunsHere here(*params.record);
  try {
    end_as(nb::handle(&params.record->ob_base)
               .attr("run_on_device")(places(arguments),
                                      reinterpret_cast<std::uintptr_t>(arguments.stream), device));
  } catch (nb::python_error& error) {
    throw BodyFailure(params.number, describe(error), held_name(*params.record));
  }
}

void launch_source(const Arguments& arguments) {
  check_stream(arguments);
  const auto params = arguments.param<BodyParams>();
  require(params.launch != nullptr, "a task of a CUDA source was submitted without its launch");
  params.launch->queue(arguments);
}

/// What a codelet does on CUDA devices.
enum class CudaVariant { none, source, callable };

using CostTuple = std::tuple<std::string, double, double>;

std::unique_ptr<PyCodelet> make_codelet(std::string name, std::vector<Access> signature,
                                        bool host_only, bool submits,
                                        const std::optional<CostTuple>& cost, bool has_body,
                                        CudaVariant cuda, bool divides) {
  auto made = std::make_unique<PyCodelet>();
  made->codelet.name = std::move(name);
  made->codelet.access = std::move(signature);
  made->codelet.host_only = host_only;
  made->codelet.submits = submits;
  if (has_body) made->codelet.cpu = call_record;
  made->fine = fine_codelet(made->codelet, divides);
  if (divides) divide_by_record(made->codelet);
  if (cuda == CudaVariant::source) made->codelet.cuda = launch_source;
  if (cuda == CudaVariant::callable) made->codelet.cuda = call_record_on_device;
  made->codelet.waits_to_queue = cuda == CudaVariant::callable;
  if (cost) {
    made->kernel = std::get<0>(*cost);
    const Cost fixed{made->kernel, std::get<1>(*cost), std::get<2>(*cost)};
    made->codelet.cost = [fixed](const Arguments&) { return fixed; };
  }
  return made;
}

/// Memory that isn't an array's own, for the body of a task: valid while it runs.
nb::object memory_view(std::uintptr_t address, std::size_t bytes, bool writable) {
  return nb::steal(PyMemoryView_FromMemory(reinterpret_cast<char*>(address),
                                           static_cast<Py_ssize_t>(bytes),
                                           writable ? PyBUF_WRITE : PyBUF_READ));
}

}  // namespace

nb::tuple places(const Arguments& arguments) {
  nb::tuple all =
      nb::steal<nb::tuple>(PyTuple_New(static_cast<Py_ssize_t>(arguments.operands.size())));
  Py_ssize_t index = 0;
  for (const View& view : arguments.operands) {
    nb::tuple place = nb::make_tuple(reinterpret_cast<std::uintptr_t>(view.data), view.ld);
    PyTuple_SET_ITEM(all.ptr(), index++, place.release().ptr());
  }
  return all;
}

InsideBody::InsideBody(long long number) : outer_(std::exchange(is_inside, true)) {
  if (!gil_) {
    is_inside = outer_;
    throw BodyFailure(number, "Python is ending");
  }
  if (outer_ || !is_own_thread()) return;
  context_ = PyContext_New();
  if (context_ != nullptr && PyContext_Enter(context_) == 0) return;
  PyErr_Clear();
  Py_CLEAR(context_);
}

InsideBody::~InsideBody() {
  is_inside = outer_;
  if (context_ == nullptr) return;
  if (PyContext_Exit(context_) != 0) PyErr_Clear();
  Py_DECREF(context_);
}

bool inside_body() noexcept { return is_inside; }

std::string describe(const nb::python_error& error) {
  auto name = nb::cast<std::string>(nb::str(error.type().attr("__name__")));
  try {
    return name + ": " + nb::cast<std::string>(nb::str(error.value()));
  } catch (const std::exception&) {
    return name;  // its text fails, or has none in UTF-8
  }
}

NamedTasks::Hold held_name(const TaskRecord& record) {
  static const nb::handle named = interned("named");
  if (record.failures == nullptr || record.failures == Py_None) return nullptr;
  const nb::object tasks = nb::getattr(nb::handle(record.failures), named, nb::none());
  return tasks.is_none() ? nullptr
                         : nb::cast<NamedTasks&>(tasks).hold(PyLong_AsLongLong(record.number));
}

BodyParams params_of(TaskRecord& record) {
  const bool launches = record.launch != nullptr && record.launch != Py_None;
  return {&record, PyLong_AsLongLong(record.number),
          launches ? nb::cast<LaunchPlan*>(nb::handle(record.launch)) : nullptr};
}

void bind_codelet(nb::module_& module) {
  nb::enum_<CudaVariant>(module, "CudaVariant", "What a codelet does on CUDA devices.")
      .value("none", CudaVariant::none)
      .value("source", CudaVariant::source)
      .value("callable", CudaVariant::callable);
  nb::class_<PyCodelet>(module, "Codelet", "An operation whose variant is a record's method.")
      .def(nb::new_(&make_codelet), nb::arg("name"), nb::arg("access"), nb::arg("host_only"),
           nb::arg("submits"), nb::arg("cost").none(), nb::arg("has_body"), nb::arg("cuda"),
           nb::arg("divides"));
  nb::class_<NamedTasks>(module, "NamedTasks", "Which failed tasks an engine can still name.")
      .def(nb::init<>())
      .def("take_unnamed", &NamedTasks::take_unnamed);
  nb::class_<View>(module, "View", "Rows and columns of memory that a fine task accesses.")
      .def(nb::new_([](std::uintptr_t address, std::int64_t rows, std::int64_t cols,
                       std::int64_t ld, DType dtype) {
             return View{reinterpret_cast<void*>(address), rows, cols, ld, dtype};
           }),
           nb::arg("address"), nb::arg("rows"), nb::arg("cols"), nb::arg("ld"), nb::arg("dtype"));
  module.def("inside_body", &inside_body);
  module.def("memory", memory_view,
             nb::sig("def memory(address: int, bytes: int, writable: bool) -> memoryview"),
             nb::arg("address"), nb::arg("bytes"), nb::arg("writable"));
}

}  // namespace quadriga::python
