// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/pending.h: a run reads what its source lends after the tasks that were submitted on
// that memory, of any engine.
//
// Invariants
//   1. The thread that begins the run waits for tasks on constants. Under the virtual clock, by
//      which no task ends while the source is asked, it waits for all tasks of the engine.
//   2. What the source lends is waited for when it has lent it: its body blocks, so that the engine
//      has other threads for the tasks.
//   3. Nobody waits for itself: what the thread that began the run accesses by on_host() isn't
//      waited for, nor anything by a run that began in a body, whose own task may be among those.
#pragma once

#include <quadriga/pipeline.h>

#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "pipeline/stage.h"

namespace quadriga {

class Pending {
 public:
  /// By the thread that begins the run. Kernels change fields as they say; bodies on the host may
  /// change all. Errors: what a task failed with that should have written a constant.
  Pending(Engine& engine, const std::vector<Stage>& stages);
  /// Waits for the tasks on what the source has lent. Errors: as in Pending().
  void settle(const Chunk& chunk);

 private:
  void settle_constants(const std::vector<Stage>& stages);

  const std::thread::id runner_;
  bool waits_ = false;  ///< For each chunk.
  bool has_bodies_ = false;
  std::unordered_set<std::string> changed_;
};

}  // namespace quadriga
