// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/flow_parts.h: what the parts of a run share, and how they hand chunks over.
#pragma once

#include <algorithm>
#include <optional>

#include "engine/engine_access.h"
#include "pipeline/flow_item.h"
#include "pipeline/flow_stats.h"
#include "pipeline/host_time.h"
#include "pipeline/mailbox.h"
#include "pipeline/stage_plan.h"

namespace quadriga {

/// All of it outlives the parts.
struct FlowParts {
  Engine& engine;
  const StagePlan& plan;
  const FlowOptions& options;
  Mailbox& mail;
  FlowStats& stats;
  HostTime& time;
  ChunkMemory* memory;  ///< Of chunks; null: the program's heap.
};

/// Decides what becomes of a chunk that a part has done with. The driving thread's.
class ChunkRouter {
 public:
  virtual ~ChunkRouter() = default;
  /// Whether the run has ended for it: it was stopped, or a chunk before this one failed.
  virtual bool is_unwanted(const ChunkId& chunk) const = 0;
  /// The chunk has passed its segment.
  virtual void passed(FlowItem& item) = 0;
  /// It won't be a result: it failed, or is unwanted.
  virtual void dropped(FlowItem& item) = 0;
  /// All that is made of it has been made, or what failed at that.
  virtual void split(FlowItem& item, const std::optional<ChunkFailure>& failure) = 0;
  /// It has got a device: another may be read ahead for it.
  virtual void entered(FlowItem& item) = 0;
  /// Any thread, in a body of a chain of chunks that a task has passed on: this thread may drive.
  virtual void tell(const Mail& mail) = 0;
};

/// Cores that run bodies, of an engine without accelerators.
inline int host_cores(const Engine& engine) {
  return std::max(1, engine.machine().devices.front().cores);
}

/// Runs a body as a task of the engine; tasks of higher priority run earlier. By the virtual clock
/// bodies take no time (HostTime lets it pass), and must not wait for a core: the caller runs it.
inline void submit_body(Engine& engine, const Codelet& codelet, std::span<const std::byte> params,
                        TaskGroup& group, int priority = 0) {
  if (engine.options().virtual_clock) return codelet.cpu({{}, params});
  EngineAccess::submit(engine, codelet, {}, params, {.priority = priority}, &group);
}

}  // namespace quadriga
