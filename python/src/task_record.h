// SPDX-License-Identifier: BSD-3-Clause
// python/src/task_record.h: a task of Python's as the engine's threads read it.
//
// Invariants
//   1. Members are read and written with the GIL held; a step of C++ that runs no Python is atomic.
//   2. A task is started or withdrawn, never both: begin() and withdraw_as() are such steps.
#pragma once

#include <nanobind/nanobind.h>
#include <quadriga/codelet.h>

namespace quadriga::python {

/// The base of quadriga.record.Record, whose documentation says what its members are; null: None.
///
/// A type of Python's own kind, for whose members Python and C++ need no call.
struct TaskRecord {
  PyObject ob_base;
  PyObject* number;
  PyObject* codelet;
  PyObject* places;
  PyObject* access;
  PyObject* parameters;
  PyObject* given;
  PyObject* core;
  PyObject* launch;
  PyObject* failures;
  PyObject* result;
  PyObject* exception;
  PyObject* error;
  PyObject* withdrawn;
  PyObject* division;
  unsigned long thread;  ///< That has begun to run its body, as Python names it; 0: none.
  char settled;
  char started;
};

/// A name that lasts, whose attribute is found without making a string.
nanobind::handle interned(const char* name);

/// The same object. Errors: invalid_argument if it is none, or has another number of modes than of
/// places.
TaskRecord& record_of(nanobind::handle object);

/// Calls the body of a task whose operands lie where their arrays are, and that is given no results
/// of others; false if it isn't such a task: its run() is to be called then.
///
/// Errors: what the body raises, as nanobind::python_error; the record knows it.
bool run_in_place(TaskRecord& record, const Arguments& arguments);

void bind_task_record(nanobind::module_& module);

}  // namespace quadriga::python
