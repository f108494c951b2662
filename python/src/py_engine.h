// SPDX-License-Identifier: BSD-3-Clause
// python/src/py_engine.h: an engine as Python holds it: shared with calls in flight, closed once.
#pragma once

#include <quadriga/engine.h>

#include <memory>
#include <utility>

#include "blocking.h"
#include "body.h"
#include "gil_gate.h"

namespace quadriga::python {

class PyEngine {
 public:
  explicit PyEngine(std::shared_ptr<EngineState> state) : state_(std::move(state)) {}
  PyEngine(PyEngine&&) = default;
  PyEngine& operator=(PyEngine&&) = delete;
  ~PyEngine() { close(); }

  /// For as long as a call uses it. Errors: invalid_argument after close().
  std::shared_ptr<EngineState> state() const {
    require(state_ != nullptr, "this engine is closed");
    return state_;
  }
  Engine& engine() const { return state()->engine(); }

  /// Calls `work` on the engine while others may hold the GIL.
  template <class Work>
  auto without_gil(Work work) const {
    std::shared_ptr<EngineState> given = state();
    const GilReleased released;
    const auto held = std::move(given);  // let go first: to end an engine takes time
    return work(held->engine());
  }

  /// Ends the engine once no call uses it: cancels what has not started and waits for the rest.
  void close() {
    if (!state_) return;
    auto given = std::move(state_);
    given->refuse(false);  // factors work on
    if (inside_body()) {
      end_elsewhere(std::move(given));
      return;
    }
    const GilReleased released;
    const auto last = std::move(given);
  }

  /// The same without waiting; `kept` is held until what runs has ended.
  void close_later(nb::object kept) {
    if (!state_) return;
    state_->keep(std::move(kept));
    state_->refuse();
    run_behind([last = std::move(state_)]() mutable {
      try {
        last->end();
      } catch (...) {
        // Nobody is there to be told.
      }
      last->refuse(false);
      last.reset();
    });
  }

 private:
  std::shared_ptr<EngineState> state_;
};

/// What the host does with data between tasks.
void bind_host_access(nb::module_& module, nb::class_<PyEngine>& engine);

}  // namespace quadriga::python
