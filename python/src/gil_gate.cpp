// SPDX-License-Identifier: BSD-3-Clause
// python/src/gil_gate.cpp: the gate's count, and its end.
#include "gil_gate.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace quadriga::python {
namespace {

using namespace std::chrono_literals;

/// Never destroyed: threads outlive the module.
class GilGate {
 public:
  bool enter() noexcept {
    if ((state_.fetch_add(1) & closed) == 0 || std::this_thread::get_id() == closer_) return true;
    leave();
    return false;
  }

  void leave() noexcept {
    if (state_.fetch_sub(1) != (closed | 1)) return;
    const std::lock_guard lock(mutex_);
    left_.notify_all();
  }

  void close() {
    if (state_.load() & closed) return;
    closer_ = std::this_thread::get_id();
    state_.fetch_or(closed);
  }

  /// Whether nobody is inside, or is so soon.
  bool wait_until_empty() {
    std::unique_lock lock(mutex_);
    return left_.wait_for(lock, 50ms, [this] { return state_.load() == closed; });
  }

 private:
  static constexpr unsigned closed = 1U << 31;
  std::atomic<unsigned> state_{0};  ///< How many are inside, and whether it is closed.
  std::thread::id closer_;          ///< Written before it is closed.
  std::mutex mutex_;                ///< For sleeping only.
  std::condition_variable left_;
};

std::atomic<GilGate*> current{new GilGate};

std::atomic<int> waiting{0};       ///< Threads of ours, for the GIL.
std::atomic<unsigned> entered{0};  ///< How often one of them got it.
std::atomic<int> returning{0};     ///< Python's threads that ask for it after a call of ours.

/// Whoever was inside isn't in a child after fork(), but for the thread that forked, which holds
/// the GIL.
void begin_child() {
  current.store(new GilGate);
  waiting.store(0);
  returning.store(0);
}

/// Its thread may be in a child now, whose gate is another.
void leave(void* gate) noexcept {
  if (gate == current.load()) static_cast<GilGate*>(gate)->leave();
}

[[noreturn]] void stop_here() {
  while (true) pause();
}

/// What Python knows of a thread of ours, from its first body to its end: to make it anew for each
/// body would take as long as ten small ones.
class KeptState {
 public:
  KeptState() = default;
  /// Within the gate.
  void keep(GilGate* gate) {
    if (gate_ != nullptr || PyGILState_GetThisThreadState() != nullptr) return;
    PyGILState_Ensure();
    PyEval_SaveThread();
    gate_ = gate;
  }
  bool is_kept() const noexcept { return gate_ != nullptr; }
  ~KeptState() {
    if (gate_ == nullptr || gate_ != current.load() || !gate_->enter()) return;
    PyGILState_Ensure();
    PyGILState_Release(PyGILState_LOCKED);
    PyGILState_Release(PyGILState_UNLOCKED);
    leave(gate_);
  }
  KeptState(const KeptState&) = delete;
  KeptState& operator=(const KeptState&) = delete;

 private:
  GilGate* gate_ = nullptr;
};
thread_local KeptState kept_state;

/// GilHere's of this thread that are inside: nobody ends Python before they have left.
thread_local int inside = 0;

}  // namespace

// Whoever gives the GIL back and takes it at once has it again before another thread is awake: that
// one is woken and finds it taken each time. So bodies let Python's threads pass.
void let_others_return() noexcept {
  using Clock = std::chrono::steady_clock;
  constexpr auto most = 200us;
  if (returning.load(std::memory_order_relaxed) == 0) return;
  for (const Clock::time_point begin = Clock::now();
       returning.load(std::memory_order_relaxed) > 0 && Clock::now() - begin < most;)
    std::this_thread::yield();
}

GilHere::GilHere() {
  GilGate* const gate = current.load();
  if (!gate->enter()) return;
  gate_ = gate;
  waiting.fetch_add(1, std::memory_order_relaxed);
  kept_state.keep(gate);
  if (inside == 0) let_others_return();
  gil_.emplace();
  ++inside;
  waiting.fetch_sub(1, std::memory_order_relaxed);
  entered.fetch_add(1, std::memory_order_relaxed);
}

bool is_own_thread() noexcept { return kept_state.is_kept(); }

bool is_turn_of_others() noexcept {
  using Clock = std::chrono::steady_clock;
  static thread_local Clock::time_point last;
  const Clock::time_point now = Clock::now();
  if (now - last < 1ms) return false;
  last = now;
  return true;
}

// Each time that a thread asks for the GIL, who gives it back has to wake it, which takes as long
// as several small bodies. So it isn't asked for while such bodies follow each other; nor is their
// processor's other half kept busy with looking whether they do.
void let_bodies_run() noexcept {
  using Clock = std::chrono::steady_clock;
  constexpr auto most = 1ms;
  constexpr auto a_small_body = 20us;
  if (waiting.load(std::memory_order_relaxed) == 0) return;
  const Clock::time_point begin = Clock::now();
  unsigned seen = 0;
  do {
    seen = entered.load(std::memory_order_relaxed);
    std::this_thread::sleep_for(a_small_body);
  } while (entered.load(std::memory_order_relaxed) != seen && Clock::now() - begin < most);
}

GilHere::~GilHere() {
  if (!gil_) return;
  --inside;
  gil_.reset();
  leave(gate_);
}

GilReleased::GilReleased() noexcept : state_(PyEval_SaveThread()) {}

GilReleased::~GilReleased() {
  if (inside > 0) {  // What it drops may release the GIL for a while, also behind a closed gate.
    PyEval_RestoreThread(state_);
    return;
  }
  GilGate* const gate = current.load();
  if (!gate->enter()) stop_here();
  returning.fetch_add(1, std::memory_order_relaxed);
  PyEval_RestoreThread(state_);
  returning.fetch_sub(1, std::memory_order_relaxed);
  leave(gate);
}

void close_gate() {
  GilGate& gate = *current.load();
  gate.close();
  for (bool empty = false; !empty;) {
    PyThreadState* const state = PyEval_SaveThread();
    empty = gate.wait_until_empty();
    PyEval_RestoreThread(state);
    if (!empty && PyErr_CheckSignals() != 0) throw nanobind::python_error();
  }
}

void bind_gate(nanobind::module_& module) {
  // Calls that were left behind may hold engines until the process ends.
  nanobind::set_leak_warnings(false);
  pthread_atfork(nullptr, nullptr, begin_child);
  module.def("close_gate", close_gate);
}

}  // namespace quadriga::python
