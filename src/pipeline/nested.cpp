// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/nested.cpp: what a run calls, within the bodies that wait for it.
#include "pipeline/nested.h"

#include <utility>

#include "engine/engine_access.h"

namespace quadriga {

void require_awaitable(const Engine& engine) {
  require(EngineAccess::may_await(engine),
          "a body runs a pipeline on an engine whose thread it holds, or a body that waits for it: "
          "each could wait for the other without end; expected an engine of its own "
          "(devices 'cpu:1'), or flat_map for chunks that are made of a chunk");
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
