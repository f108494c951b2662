// SPDX-License-Identifier: BSD-3-Clause
// python/src/body.h: how a failure of a Python body travels through the engine, and who is inside.
#pragma once

#include <nanobind/nanobind.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "gil_gate.h"
#include "named_tasks.h"

namespace quadriga::python {

/// A Python body raised. Holds no Python object: quadriga.failures keeps the exception for as long
/// as a copy of this names its task.
class BodyFailure : public std::runtime_error {
 public:
  /// `named`: as held_name() gives it; null if nobody looks the exception up.
  BodyFailure(long long record, const std::string& message, NamedTasks::Hold named = nullptr)
      : std::runtime_error(message), record_(record), named_(std::move(named)) {}
  /// The number of the record in its engine.
  long long record() const noexcept { return record_; }
  const NamedTasks::Hold& named() const noexcept { return named_; }

 private:
  long long record_;
  NamedTasks::Hold named_;
};

/// Holds the GIL while a Python body runs in an engine's thread.
class InsideBody {
 public:
  /// Throws BodyFailure if Python is ending.
  explicit InsideBody(long long number);
  ~InsideBody();
  InsideBody(const InsideBody&) = delete;
  InsideBody& operator=(const InsideBody&) = delete;

 private:
  GilHere gil_;
  bool outer_;
  /// Its context variables, where the thread is no one's: what a body sets there, as NumPy's
  /// handling of errors, isn't the next one's. Null: the caller's.
  PyObject* context_ = nullptr;
};

/// Whether this thread runs a Python body; waits are done in place then.
bool inside_body() noexcept;

/// "ValueError: what it says". The GIL must be held.
std::string describe(const nanobind::python_error& error);

}  // namespace quadriga::python
