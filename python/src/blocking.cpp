// SPDX-License-Identifier: BSD-3-Clause
// python/src/blocking.cpp: waits in slices, work on other threads, callers that look for signals.
#include "blocking.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <optional>
#include <utility>

#include "base/process.h"
#include "base/thread.h"
#include "bindings.h"
#include "body.h"
#include "engine/engine_access.h"
#include "engine/hold.h"
#include "engine/on_host.h"
#include "gil_gate.h"
#include "workers.h"

namespace quadriga::python {

using namespace std::chrono_literals;

EngineState::EngineState(EngineOptions options)
    : owner_(process_id()), engine_(std::make_unique<Engine>(std::move(options))) {}

namespace {

std::atomic<bool> python_ends = false;

}  // namespace

EngineState::~EngineState() {
  if (process_id() != owner_) {
    static_cast<void>(engine_.release());
    return;
  }
  std::optional<GilReleased> released;  // its threads need it to end
  if (Py_IsInitialized() != 0 && PyGILState_Check() != 0) released.emplace();
  engine_.reset();
}

void EngineState::cancel() noexcept {
  if (process_id() != owner_) return;
  try {
    engine_->cancel();
  } catch (...) {
    // What was wrong is of no use any more.
  }
}

void EngineState::refuse(bool on) noexcept {
  if (on) has_ended_.store(true);
  if (process_id() == owner_ && (on || !python_ends)) EngineAccess::refuse(*engine_, on);
}

void EngineState::refuse_for_good() noexcept { python_ends = true; }

void EngineState::end() {
  check_not_forked(owner_, "this engine");
  refuse();
  engine_->cancel();
  if (inside_body()) return;  // which may be what another call waits for
  for (int count = submitting_.load(); count != 0; count = submitting_.load())
    submitting_.wait(count);
  engine_->cancel();
  bring_all_home(*engine_);
}

Submitting::~Submitting() {
  std::atomic<int>& count = state_->submitting_;
  if (count.fetch_sub(1) == 1 && state_->has_ended_.load()) count.notify_all();
  if (inside_body() && state_.use_count() == 1) end_elsewhere(std::move(state_));
}

void run_behind(std::function<void()> work) {
  const auto job = std::make_shared<std::function<void()>>(std::move(work));
  const auto run = [job] {
    (*job)();
    *job = nullptr;  // what it held is let go here
  };
  try {
    start_thread("quadriga waiter", run).detach();
  } catch (const Error&) {
    const GilReleased released;
    run();
  }
}

void EngineState::stay_behind(int threads) {
  const std::lock_guard lock(mutex_);
  left_behind_ += threads;
}

void EngineState::come_back() {
  const std::lock_guard lock(mutex_);
  --left_behind_;
  changed_.notify_all();
}

Keep::~Keep() {
  if (objects_.empty()) return;
  const GilHere gil;
  if (!gil) return;
  for (PyObject* const object : objects_) Py_DECREF(object);
}

namespace {

constexpr auto slice = 50ms;

void check_signals() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace

void wait_alone(EngineState& state) {
  check_not_forked(state.owner_, "this engine");
  if (inside_body()) return;
  const auto alone = [&] { return state.left_behind_ == 0; };
  while (true) {
    {
      std::unique_lock lock(state.mutex_);
      if (alone()) return;
    }
    {
      const GilReleased released;
      std::unique_lock lock(state.mutex_);
      if (state.changed_.wait_for(lock, slice, alone)) return;
    }
    check_signals();
  }
}

/// One call: shared by the caller, the thread that works and the one that cancels.
class BlockingCall : public std::enable_shared_from_this<BlockingCall> {
 public:
  BlockingCall(std::shared_ptr<EngineState> state, Blocking& call)
      : state_(std::move(state)),
        work_(std::move(call.work)),
        keep_(std::move(call.keep)),
        progress_(std::move(call.progress)),
        thread_(acting_thread()) {}

  void run(const nb::object& callback) {
    wait_alone(*state_);
    Workers::here().start(
        [self = shared_from_this(), state = state_]() mutable { self->work(std::move(state)); });
    try {
      poll(callback);
    } catch (...) {
      leave();
      throw;
    }
    state_.reset();  // The thread may still hold this: the engine ends where it is closed.
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void work(std::shared_ptr<EngineState> state) {
    std::exception_ptr error;
    acting_thread() = thread_;
    try {
      work_();
    } catch (...) {
      error = std::current_exception();
    }
    work_ = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (!left_) state.reset();  // never the last: the caller waits, and holds one
      error_ = std::move(error);
      done_ = true;
      changed_.notify_all();
    }
    if (state) state->come_back();
  }

  void poll(const nb::object& callback) {
    double shown = -1;
    for (bool done = false; !done;) {
      {
        const GilReleased released;
        std::unique_lock lock(mutex_);
        done = changed_.wait_for(lock, slice, [this] { return done_; });
      }
      if (!done) check_signals();
      if (!progress_ || callback.is_none()) continue;
      const double fraction = progress_->fraction.load(std::memory_order_relaxed);
      if (fraction != shown) callback(shown = fraction);
    }
  }

  /// The work's thread ends by itself; another one cancels tasks for as long as it submits
  /// new ones.
  void leave() {
    if (progress_) progress_->cancelled.store(true, std::memory_order_relaxed);
    {
      const std::lock_guard lock(mutex_);
      left_ = true;
      state_->stay_behind(done_ ? 1 : 2);
    }
    run_behind([self = shared_from_this()] { self->cancel(); });
  }

  void cancel() {
    std::unique_lock lock(mutex_);
    do {
      lock.unlock();
      try {
        state_->engine().cancel();
      } catch (const std::exception&) {
        // An engine that broke tells whoever calls it next; the work ends by that, too.
      }
      lock.lock();
    } while (!changed_.wait_for(lock, 10ms, [this] { return done_; }));
    state_->come_back();
  }

  std::shared_ptr<EngineState> state_;
  std::function<void()> work_;
  std::shared_ptr<Keep> keep_;
  std::shared_ptr<Progress> progress_;
  const std::thread::id thread_;  // The caller's: what that holds on the host is the work's, too.
  std::mutex mutex_;              // Before the state's.
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::exception_ptr error_;
  bool done_ = false;
  bool left_ = false;
};

void block(const std::shared_ptr<EngineState>& state, Blocking call) {
  if (inside_body()) {
    const GilReleased released;
    call.work();
    return;
  }
  const nb::object callback = std::move(call.callback);
  std::make_shared<BlockingCall>(state, call)->run(callback);
}

/// The engine's tasks are cancelled behind a caller that doesn't wait any more.
void leave(std::shared_ptr<EngineState> state) {
  state->stay_behind(1);
  run_behind([state = std::move(state)] {
    state->cancel();
    state->come_back();
  });
}

namespace {

/// One slice, or what is left if that is less; false if the wait goes on.
bool wait_slice(EngineState& state, double left, const Wait& wait) {
  const double seconds = std::min(left, std::chrono::duration<double>(slice).count());
  const GilReleased released;
  try {
    wait(state.engine(), seconds);
  } catch (const Error& error) {
    if (error.code() != Errc::deadline || seconds == left) throw;
    return false;
  }
  return true;
}

}  // namespace

std::function<void()> calling(const nb::object& look, nb::handle awaited) {
  if (look.is_none()) return nullptr;
  return [look = nb::handle(look), awaited] { look(awaited); };
}

void block_in_slices(const std::shared_ptr<EngineState>& state, double seconds, Wait wait,
                     const std::function<void()>& look) {
  // Seconds of the virtual clock say nothing of how long they take.
  if (inside_body() || state->engine().options().virtual_clock) {
    const auto work = [state, seconds, wait = std::move(wait)] { wait(state->engine(), seconds); };
    block(state, {work, nullptr, nullptr, nb::none()});
    return;
  }
  wait_alone(*state);
  const auto begin = std::chrono::steady_clock::now();
  double left = seconds < 0 ? std::numeric_limits<double>::infinity() : seconds;
  while (!wait_slice(*state, left, wait)) {
    try {
      check_signals();
    } catch (const nb::python_error&) {
      leave(state);
      throw;
    }
    if (seconds < 0) {  // else it ends in any case
      if (look) look();
      continue;
    }
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    left = std::max(0.0, seconds - passed.count());
  }
}

}  // namespace quadriga::python
