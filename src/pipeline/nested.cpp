// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/nested.cpp: what a run calls, within the bodies that wait for it.
#include "pipeline/nested.h"

#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "engine/engine_access.h"

namespace quadriga {
namespace {

void require_no_circle(bool is_none) {
  require(is_none,
          "a body runs a pipeline on an engine whose thread it holds, or a body that waits for it: "
          "each could wait for the other without end; expected an engine of its own "
          "(devices 'cpu:1'), or flat_map for chunks that are made of a chunk");
}

/// Bodies of one engine that wait for another one at this moment. Any thread.
class EngineWaits {
 public:
  /// False, and nothing is noted, if the awaited one waits for one of the bodies' already.
  bool add(const Engines& bodies, const Graph* awaited) {
    const std::lock_guard lock(mutex_);
    std::set<const Graph*> behind{awaited};
    for (std::vector<const Graph*> next{awaited}; !next.empty();) {
      const Graph* const each = next.back();
      next.pop_back();
      for (const auto& [wait, count] : waits_)
        if (wait.first == each && behind.insert(wait.second).second) next.push_back(wait.second);
    }
    for (const Graph* const body : bodies)
      if (behind.contains(body)) return false;
    for (const Graph* const body : bodies) ++waits_[{body, awaited}];
    return true;
  }
  void remove(const Engines& bodies, const Graph* awaited) {
    const std::lock_guard lock(mutex_);
    for (const Graph* const body : bodies)
      if (const auto found = waits_.find({body, awaited}); --found->second == 0)
        waits_.erase(found);
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<const Graph*, const Graph*>, int> waits_;
};

EngineWaits& engine_waits() {
  static EngineWaits all;
  return all;
}

}  // namespace

void require_awaitable(const Engine& engine) { require_no_circle(EngineAccess::may_await(engine)); }

Awaiting::Awaiting(const Engine& engine) {
  require_awaitable(engine);
  bodies_ = occupied_engines();
  if (bodies_.empty()) return;
  engine_ = EngineAccess::graph(engine);
  require_no_circle(engine_waits().add(bodies_, engine_));
}

Awaiting::~Awaiting() {
  if (engine_) engine_waits().remove(bodies_, engine_);
}

Nesting::Nesting(const Engine& engine, std::vector<Stage>& stages, Pipeline::Source& source)
    : waiting_(occupied_engines()) {
  require_awaitable(engine);
  if (waiting_.empty()) return;
  tell(source);
  for (Stage& stage : stages) tell(stage);
}

template <class Function>
void Nesting::tell(Function& function) {
  if (!function) return;
  function = [this, call = std::move(function)](auto&&... arguments) {
    const WaitedFor waited(waiting_);
    return call(std::forward<decltype(arguments)>(arguments)...);
  };
}

void Nesting::tell(Stage& stage) {
  tell(stage.body);
  if (stage.split)
    stage.split = [this, split = std::move(stage.split)](Chunk& chunk) {
      const WaitedFor waited(waiting_);
      Pipeline::Source parts = split(chunk);
      tell(parts);
      return parts;
    };
  if (!stage.codelet) return;
  Codelet& kernel = kernels_.emplace_back(*stage.codelet);
  tell(kernel.cpu);
  tell(kernel.cuda);
  for (auto& [kind, variant] : kernel.others) tell(variant);
  stage.codelet = &kernel;
}

}  // namespace quadriga
