// SPDX-License-Identifier: BSD-3-Clause
// python/src/py_engine.h: an engine as Python holds it: shared with calls in flight, closed once.
#pragma once

#include <quadriga/engine.h>

#include <memory>
#include <thread>
#include <utility>

#include "blocking.h"
#include "body.h"

namespace quadriga::python {

class PyEngine {
 public:
  explicit PyEngine(std::shared_ptr<EngineState> state) : state_(std::move(state)) {}
  PyEngine(PyEngine&&) = default;
  PyEngine& operator=(PyEngine&&) = delete;
  ~PyEngine() { close(); }

  /// Errors: invalid_argument after close().
  const std::shared_ptr<EngineState>& state() const {
    require(state_ != nullptr, "this engine is closed");
    return state_;
  }
  Engine& engine() const { return state()->engine(); }

  /// Calls `work` on the engine while others may hold the GIL.
  template <class Work>
  auto without_gil(Work work) const {
    const auto held = state();
    const nb::gil_scoped_release released;
    return work(held->engine());
  }

  /// Ends the engine once no call uses it: cancels what has not started and waits for the rest.
  void close() {
    if (!state_) return;
    if (inside_body()) {
      // The engine can't join the thread that runs this body.
      std::thread([last = std::move(state_)] {}).detach();
      return;
    }
    const nb::gil_scoped_release released;
    state_.reset();
  }

  /// The same without waiting; `kept` is held until what runs has ended.
  void close_later(nb::object kept) {
    if (!state_) return;
    state_->keep(std::move(kept));
    std::thread([last = std::move(state_)]() mutable {
      last->cancel();
      last.reset();
    }).detach();
  }

 private:
  std::shared_ptr<EngineState> state_;
};

/// What the host does with data between tasks.
void bind_host_access(nb::module_& module, nb::class_<PyEngine>& engine);

}  // namespace quadriga::python
