// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/nested.h: runs that bodies begin or wait for: refused, or known to what they call.
//
// A body that waits for a run on its own engine keeps a thread that the run may need: of several
// such bodies each would wait for the others. The same holds of a run on another engine, if one of
// its bodies waits for a run on the first. Whether a thread is left this time isn't asked.
//
// A run that began outside of bodies knows none that wait for it. So whoever waits says so while it
// does: which engines' bodies wait for which engine. Whoever would close a circle is refused. Who
// ends a run can't be, and only says so.
#pragma once

#include <quadriga/pipeline.h>

#include <deque>
#include <vector>

#include "engine/occupied.h"
#include "pipeline/stage.h"

namespace quadriga {

/// Before this thread waits for a run on the engine. Errors: invalid_argument in a body whose
/// thread the run may need.
void require_awaitable(const Engine& engine);

/// While it lives, this thread waits for a run on the engine. Costs nothing outside of bodies.
class Awaiting {
 public:
  /// Errors: as require_awaitable(); the same if bodies of that engine wait, by way of others, for
  /// one whose thread this body holds.
  explicit Awaiting(const Engine& engine);
  /// Of a wait that can't be refused.
  struct Always {};
  Awaiting(const Engine& engine, Always always) noexcept;
  ~Awaiting();
  Awaiting(const Awaiting&) = delete;
  Awaiting& operator=(const Awaiting&) = delete;

 private:
  Engines bodies_;  ///< Whose threads are held meanwhile.
  const Graph* engine_ = nullptr;
};

/// Whether a body waits for a run on the engine at this moment.
bool is_awaited(const Engine& engine);

/// The engines whose bodies wait for a run. What the run calls is told which they are.
class Nesting {
 public:
  /// Errors: as require_awaitable().
  Nesting(const Engine& engine, std::vector<Stage>& stages, Pipeline::Source& source);
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  void tell(Stage& stage);
  template <class Function>
  void tell(Function& function);

  const Engines waiting_;
  std::deque<Codelet> kernels_;  ///< Instead of the stages' own.
};

}  // namespace quadriga
