// SPDX-License-Identifier: BSD-3-Clause
// src/engine/others.h: order between tasks of several engines of a process.
//
// Invariants
//   1. A wait is for tasks that were submitted before it, as an access on the host is, and holds no
//      lock. So two threads that submit to two engines never wait for each other.
//   2. A body waits for nothing: tasks may wait for its end. What its task accesses is the body's
//      to pass on; where another engine's task is in the way, the submission is refused.
//   3. An engine in which somebody waits stays until he has left it.
#pragma once

#include <atomic>
#include <span>
#include <thread>

#include "engine/engine_access.h"
#include "engine/hold.h"

namespace quadriga {

/// How many engines have entered. Who sees that one has left sees what its tasks wrote.
inline std::atomic<std::size_t> known_engines{0};

/// An engine among those of its process that have registered memory.
class Others {
 public:
  enum class InBody : std::uint8_t { refuse, pass };  ///< What becomes of a wait in a body.

  explicit Others(EngineAccess::Impl& own);

  /// Once it registers memory; more than once does nothing.
  void enter();
  /// Once nobody waits in this engine any more.
  void leave() noexcept;
  bool any() const noexcept {
    return known_engines.load(std::memory_order_acquire) > (is_entered_.load() ? 1U : 0U);
  }
  /// Waits until no task of another engine conflicts with an access to some memory, whose content
  /// is at home then. Errors: what a task failed with that should have written it.
  void follow(std::span<const HeldRegion> regions, InBody in_body);
  void follow(std::span<const Operand> operands);

 private:
  EngineAccess::Impl& own_;
  std::atomic<bool> is_entered_{false};
};

/// As Others::follow(); in bodies it doesn't wait.
void follow_others(Engine& engine, std::span<const HeldRegion> regions);
/// The same for tasks of all engines, for a run that a thread has begun: in a body that blocks, on
/// behalf of the thread that waits for it: what that accesses by on_host() isn't waited for.
void follow_all(std::span<const HeldRegion> regions, std::thread::id runner);
/// Whether this thread runs a body of any engine, or works for one.
bool is_in_body();

}  // namespace quadriga
