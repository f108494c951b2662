// SPDX-License-Identifier: BSD-3-Clause
// python/src/py_division.cpp: fine tasks with Python bodies, on parts of a task's operands.
//
// The record of the divided task keeps its fine tasks alive, and each of those its own.
#include "py_division.h"

#include <nanobind/nanobind.h>
#include <quadriga/division.h>

#include <vector>

#include "bindings.h"
#include "body.h"
#include "one_blas_thread.h"
#include "py_codelet.h"

namespace quadriga::python {
namespace {

/// What the variant of a fine task gets.
struct FineParams {
  PyObject* task = nullptr;  ///< A quadriga.division.FineTask.
  TaskRecord* record = nullptr;
  long long number = 0;  ///< The record's.
};

/// Calls something of a record's with the GIL held; it learns of what that raises.
template <class Call>
void guarded(TaskRecord* record, long long number, Call&& call) {
  const InsideBody inside(number);
  try {
    call();
  } catch (nb::python_error& error) {
    nb::handle(&record->ob_base).attr("fail_in_place")(error.value());
    throw BodyFailure(number, describe(error), held_name(*record));
  }
}

void add(Division& division, nb::handle tasks, TaskRecord* record, long long number) {
  std::vector<View> operands;
  for (nb::handle task : tasks) {
    operands.clear();
    for (nb::handle operand : task.attr("operands")) operands.push_back(nb::cast<View>(operand));
    const FineParams params{task.ptr(), record, number};
    division.add(nb::cast<PyCodelet&>(task.attr("core")).fine, operands,
                 std::as_bytes(std::span(&params, 1)));
  }
}

void call_fine(const Arguments& arguments) {
  const auto params = arguments.param<FineParams>();
  guarded(params.record, params.number, [&] {
    const OneBlasThread one_thread;
    nb::handle(params.task).attr("run")();
  });
}

void divide_fine(const Arguments& arguments, Division& division) {
  const auto params = arguments.param<FineParams>();
  guarded(params.record, params.number, [&] {
    const nb::object tasks = nb::handle(params.task).attr("divide")();
    add(division, tasks, params.record, params.number);
  });
}

}  // namespace

Codelet fine_codelet(const Codelet& codelet, bool divides) {
  Codelet fine{.name = codelet.name, .access = codelet.access};
  fine.submits = codelet.submits;
  if (codelet.cpu) fine.cpu = call_fine;
  if (divides) set_division(fine, divide_fine);
  return fine;
}

void divide_by_record(Codelet& codelet) {
  set_division(codelet, [](const Arguments& arguments, Division& division) {
    const auto params = arguments.param<BodyParams>();
    guarded(params.record, params.number, [&] {
      const nb::object tasks =
          nb::handle(&params.record->ob_base).attr("divide")(places(arguments));
      add(division, tasks, params.record, params.number);
    });
  });
}

}  // namespace quadriga::python
