// SPDX-License-Identifier: BSD-3-Clause
// python/src/blocking.h: calls that block, from Python: without the GIL, and open to Ctrl-C.
//
// Invariants
//   1. A wait runs on the calling thread, in slices of 50 ms without the GIL; signals are looked
//      for between slices. Work that can't be cut runs on one of the `Workers`, and the caller
//      looks for signals as often. What the work touches belongs to it, or is held by its Keep.
//   2. If a signal handler raises, the caller leaves at once; the work's thread, if there is one,
//      and another one that cancels the engine's tasks go on, counted in `left_behind`.
//   3. The next call on this engine, submissions included, begins when left_behind is 0; bodies of
//      running tasks, for which the canceller waits, go on.
//   4. Python objects are let go with the GIL held, or never if the interpreter has ended.
//   5. An engine ends in this order: it refuses tasks, cancels those that have not started, waits
//      for the calls that were submitting, and cancels what these still submitted. Factors may
//      solve afterwards; whoever was about to submit as the engine ended is refused.
//   6. When a call that nobody left returns, its thread holds the engine no more, so that closing
//      an engine ends it there and then.
#pragma once

#include <nanobind/nanobind.h>
#include <quadriga/engine.h>
#include <quadriga/error.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/thread.h"

namespace quadriga::python {

namespace nb = nanobind;

/// Python objects that are needed until some work has ended, in whatever thread.
class Keep {
 public:
  Keep() = default;
  ~Keep();
  Keep(const Keep&) = delete;
  Keep& operator=(const Keep&) = delete;
  void add(nb::object object) { objects_.push_back(object.release().ptr()); }

 private:
  std::vector<PyObject*> objects_;
};

/// An engine that threads left behind may still use.
class EngineState {
 public:
  explicit EngineState(EngineOptions options);
  /// Waits for what runs; in a child after fork() it gives the engine up without touching it.
  ~EngineState();
  EngineState(const EngineState&) = delete;
  EngineState& operator=(const EngineState&) = delete;

  Engine& engine() noexcept { return *engine_; }
  const Engine& engine() const noexcept { return *engine_; }
  /// Cancels what has not started and waits for what runs; in a child after fork() it does nothing.
  void cancel() noexcept;
  /// Whether tasks are refused from here on; Submitting's are refused ever after.
  void refuse(bool on = true) noexcept;
  /// Python ends: engines that refuse tasks never take any again, whoever still holds them.
  static void refuse_for_good() noexcept;
  /// Refuses tasks, cancels those that have not started, waits for what runs, and brings home what
  /// tasks wrote; throws, at last, what kept that from coming.
  void end();
  /// Keeps an object until the engine has ended. The GIL must be held.
  void keep(nb::object object) { keep_.add(std::move(object)); }
  /// Calls that are removing data, whose memory comes back when they have ended.
  std::atomic<int>& removing() noexcept { return removing_; }

 private:
  friend class BlockingCall;
  friend void wait_alone(EngineState& state);
  friend void leave(std::shared_ptr<EngineState> state);
  friend class Submitting;
  void stay_behind(int threads);
  void come_back();
  int owner_;
  Keep keep_;  // Let go after the engine, whose tasks may use what is kept.
  std::unique_ptr<Engine> engine_;
  std::atomic<int> removing_{0};
  std::atomic<int> submitting_{0};  // Calls that may still submit a task.
  // Set before `submitting_` is waited for, read within it, and after it, for whoever waits then.
  std::atomic<bool> has_ended_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  int left_behind_ = 0;  // Guarded by mutex_.
};

/// A call that submits a task on an engine, whose end waits for it.
class Submitting {
 public:
  explicit Submitting(std::shared_ptr<EngineState> state) noexcept : state_(std::move(state)) {
    state_->submitting_.fetch_add(1);
  }
  ~Submitting();
  Submitting(const Submitting&) = delete;
  Submitting& operator=(const Submitting&) = delete;
  /// Errors: invalid_argument once the engine has begun to end.
  Engine& engine() const {
    require(!state_->has_ended_.load(), "this engine is closed");
    return state_->engine();
  }

 private:
  std::shared_ptr<EngineState> state_;
};

/// Lets go inside of a body what waits for its tasks, or joins its thread: an engine, a matrix.
template <class Last>
void end_elsewhere(Last last) noexcept {
  auto* const held = new Last(std::move(last));
  try {
    start_thread("quadriga freer", [held] { delete held; }).detach();
  } catch (const Error&) {
    // It idles until the process ends.
  }
}

/// Runs work that throws nothing on a thread of its own; where none can be started, here. The GIL
/// must be held.
void run_behind(std::function<void()> work);

/// How far the work is, as its thread says; read by the caller.
struct Progress {
  std::atomic<double> fraction{0};
  std::atomic<bool> cancelled{false};
  /// What Options::progress is to call.
  bool report(double value) noexcept {
    fraction.store(value, std::memory_order_relaxed);
    return !cancelled.load(std::memory_order_relaxed);
  }
};

/// Waits until no call is left behind; open to signals. The GIL must be held.
void wait_alone(EngineState& state);

/// What a blocking call does and needs.
struct Blocking {
  std::function<void()> work;
  std::shared_ptr<Keep> keep;
  std::shared_ptr<Progress> progress;
  nb::object callback;  ///< Called with Progress::fraction as it changes; none: not called.
};

/// Runs the work; returns when it has ended, or throws what a signal handler or the callback
/// raised. The GIL must be held. Inside of a Python body the work runs in place.
void block(const std::shared_ptr<EngineState>& state, Blocking call);

/// A wait of the engine's, with its timeout in seconds; negative: for ever.
using Wait = std::function<void(Engine& engine, double seconds)>;

/// Calls a function with what somebody waits for; the GIL must be held, and both live. None: null.
std::function<void()> calling(const nb::object& look, nb::handle awaited);

/// The same for a wait. `look` is called between slices, with the GIL, outside of bodies and not
/// under the virtual clock; null: nothing is. Errors: what the wait or `look` throws; deadline once
/// `seconds` have passed.
void block_in_slices(const std::shared_ptr<EngineState>& state, double seconds, Wait wait,
                     const std::function<void()>& look = nullptr);

}  // namespace quadriga::python
