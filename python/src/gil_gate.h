// SPDX-License-Identifier: BSD-3-Clause
// python/src/gil_gate.h: threads of ours take the GIL through a gate that closes before Python
// ends.
//
// Invariants
//   1. Whoever is inside the gate may wait for the GIL; Python ends a thread that asks for it
//      later, in the middle of whatever it does.
//   2. Once the gate is closed nobody enters but the thread that closed it; close_gate() returns
//      when nobody is inside.
//   3. What Python keeps of a thread of ours lasts from its first body to its end, which takes the
//      GIL: so who joins such a thread doesn't hold it.
//   4. A thread of Python's that comes back from a call of ours to a closed gate stops there until
//      the process ends: it holds no lock then.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>

namespace quadriga::python {

/// Holds the GIL in a thread of ours; false if Python is ending, and then nothing of it may
/// be used.
class GilHere {
 public:
  GilHere();
  ~GilHere();
  GilHere(const GilHere&) = delete;
  GilHere& operator=(const GilHere&) = delete;
  explicit operator bool() const noexcept { return gil_.has_value(); }

 private:
  void* gate_ = nullptr;
  std::optional<nanobind::gil_scoped_acquire> gil_;
};

/// Whether this is a thread of ours that Python knows only for the bodies that it runs.
bool is_own_thread() noexcept;

/// Whether a thread that could keep the GIL lets others have it: a millisecond after it last did.
/// Passing it on takes longer than a small task.
bool is_turn_of_others() noexcept;

/// Without the GIL: comes back after a millisecond, or once no small bodies that waited for it
/// follow each other.
void let_bodies_run() noexcept;

/// Lets others hold the GIL while it lives. Its thread is one of Python's, perhaps a daemon.
class GilReleased {
 public:
  GilReleased() noexcept;
  ~GilReleased();
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;

 private:
  PyThreadState* state_;
};

/// Closes the gate and waits for those inside; open to signals. Called when the process ends.
void close_gate();

void bind_gate(nanobind::module_& module);

}  // namespace quadriga::python
