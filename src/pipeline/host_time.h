// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/host_time.h: what stages on the host take by the virtual clock, as was stated.
//
// Bodies take no time there. Where seconds are stated, a task that does nothing else takes them, on
// a core of the machine's host, and what follows from the body follows from the end of that task.
#pragma once

#include <quadriga/pipeline.h>

#include <functional>
#include <memory>

#include "engine/engine_access.h"

namespace quadriga {

/// What is stated of a stage and a chunk.
/// Errors: invalid_argument unless it is finite and at least 0; what the function throws.
double stated_seconds(const Pipeline::Seconds& seconds, const Chunk& chunk);

class HostTime {
 public:
  explicit HostTime(Engine& engine);

  /// Whether stages take what is stated of them; else they take what they take.
  bool is_stated() const { return engine_.options().virtual_clock; }
  /// `then` is called at the end, as TaskGroup::on_end; the group is kept until then.
  std::unique_ptr<TaskGroup> pass(double seconds, std::function<void()> then);

 private:
  Engine& engine_;
  Codelet codelet_;
};

}  // namespace quadriga
