// SPDX-License-Identifier: BSD-3-Clause
// python/src/gil_gate.cpp: the gate's count, and its end.
#include "gil_gate.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace quadriga::python {
namespace {

using namespace std::chrono_literals;

/// Never destroyed: threads outlive the module.
struct Gate {
  std::mutex mutex;
  std::condition_variable left;
  int inside = 0;       // Guarded by mutex.
  bool closed = false;  // Guarded by mutex.

  bool enter() {
    const std::lock_guard lock(mutex);
    if (closed) return false;
    ++inside;
    return true;
  }

  void leave() {
    const std::lock_guard lock(mutex);
    if (--inside == 0) left.notify_all();
  }
};

Gate& gate() {
  static Gate* const instance = new Gate;
  return *instance;
}

}  // namespace

GilHere::GilHere() {
  if (gate().enter()) gil_.emplace();
}

GilHere::~GilHere() {
  if (!gil_) return;
  gil_.reset();
  gate().leave();
}

void close_gate() {
  Gate& all = gate();
  for (bool empty = false; !empty;) {
    {
      const nanobind::gil_scoped_release released;
      std::unique_lock lock(all.mutex);
      all.closed = true;
      empty = all.left.wait_for(lock, 50ms, [&] { return all.inside == 0; });
    }
    if (!empty && PyErr_CheckSignals() != 0) throw nanobind::python_error();
  }
}

void bind_gate(nanobind::module_& module) {
  // Calls that were left behind may hold engines until the process ends.
  nanobind::set_leak_warnings(false);
  module.def("close_gate", close_gate);
}

}  // namespace quadriga::python
