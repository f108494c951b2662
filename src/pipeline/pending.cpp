// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/pending.cpp: waits for tasks on the memory of constants and of chunks.
#include "pipeline/pending.h"

#include "engine/engine_access.h"
#include "engine/others.h"

namespace quadriga {
namespace {

HeldRegion held(const View& view, bool writes) {
  return {region_of(view), writes ? Access::update : Access::read};
}

}  // namespace

Pending::Pending(Engine& engine, const std::vector<Stage>& stages)
    : runner_(std::this_thread::get_id()) {
  if (is_in_body() || !engine.options().compute) return;
  for (const Stage& stage : stages) {
    has_bodies_ |= stage.kind != StageKind::kernel;
    for (const FieldUse& use : stage.uses)
      if (use.access != Access::read) changed_.insert(use.name);
  }
  settle_constants(stages);
  waits_ = !engine.options().virtual_clock;
  const Counters counters = engine.counters();
  if (!waits_ && counters.ended < counters.submitted) engine.wait();
}

void Pending::settle_constants(const std::vector<Stage>& stages) {
  std::vector<HeldRegion> regions;
  for (const Stage& stage : stages)
    for (const FieldUse& use : stage.uses)
      if (use.constant.data) regions.push_back(held(use.constant, false));
  follow_all(regions, runner_);
}

void Pending::settle(const Chunk& chunk) {
  if (!waits_) return;
  std::vector<HeldRegion> regions;
  for (const Chunk::Field& each : chunk.fields())
    if (each.is_lent && each.view.data && each.view.rows > 0 && each.view.cols > 0)
      regions.push_back(held(each.view, has_bodies_ || changed_.contains(each.name)));
  follow_all(regions, runner_);
}

}  // namespace quadriga
