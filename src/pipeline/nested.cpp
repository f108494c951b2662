// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/nested.cpp: what a run calls, within the bodies that wait for it.
#include "pipeline/nested.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "engine/engine_access.h"
#include "engine/occupied.h"

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
    if (closes_circle(bodies, awaited)) return false;
    note(bodies, awaited);
    return true;
  }
  void add_always(const Engines& bodies, const Graph* awaited) {
    const std::lock_guard lock(mutex_);
    note(bodies, awaited);
  }
  bool is_awaited(const Graph* engine) {
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(waits_,
                               [&](const auto& wait) { return wait.first.second == engine; });
  }
  void remove(const Engines& bodies, const Graph* awaited) {
    const std::lock_guard lock(mutex_);
    for (const Graph* const body : bodies)
      if (const auto found = waits_.find({body, awaited}); --found->second == 0)
        waits_.erase(found);
  }

 private:
  void note(const Engines& bodies, const Graph* awaited) {
    for (const Graph* const body : bodies) ++waits_[{body, awaited}];
  }
  bool closes_circle(const Engines& bodies, const Graph* awaited) const {
    std::set<const Graph*> behind{awaited};
    for (std::vector<const Graph*> next{awaited}; !next.empty();) {
      const Graph* const each = next.back();
      next.pop_back();
      for (const auto& [wait, count] : waits_)
        if (wait.first == each && behind.insert(wait.second).second) next.push_back(wait.second);
    }
    return std::ranges::any_of(bodies, [&](const Graph* body) { return behind.contains(body); });
  }

  std::mutex mutex_;
  std::map<std::pair<const Graph*, const Graph*>, int> waits_;
};

EngineWaits& engine_waits() {
  static EngineWaits all;
  return all;
}

}  // namespace

void require_awaitable(const Engine& engine) { require_no_circle(may_await(engine)); }

Awaiting::Awaiting(const Engine& engine) {
  require_awaitable(engine);
  bodies_ = occupied_engines();
  if (bodies_.empty()) return;
  engine_ = EngineAccess::graph(engine);
  require_no_circle(engine_waits().add(bodies_, engine_));
}

Awaiting::Awaiting(const Engine& engine, Always /*always*/) noexcept {
  try {
    may_await(engine);  // a body that blocks counts no more
    bodies_ = occupied_engines();
    if (bodies_.empty()) return;
    engine_waits().add_always(bodies_, EngineAccess::graph(engine));
    engine_ = EngineAccess::graph(engine);
  } catch (...) {
    // Without memory, or after fork(): nobody is told.
  }
}

bool is_awaited(const Engine& engine) {
  return engine_waits().is_awaited(EngineAccess::graph(engine));
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
