// SPDX-License-Identifier: BSD-3-Clause
// src/engine/occupied.cpp: the bodies that this thread runs, and those that wait for them.
#include "engine/occupied.h"

#include <algorithm>
#include <utility>

#include "engine/bodies.h"
#include "engine/engine_impl.h"
#include "engine/promises.h"

namespace quadriga {
namespace {

thread_local const Engines* waiting_engines = nullptr;

}  // namespace

Engines occupied_engines() {
  Engines found;
  if (waiting_engines) found = *waiting_engines;
  for (const RunningTask* each = running_here; each; each = each->outer())
    if (each->keeps_thread()) found.push_back(&each->graph());
  return found;
}

Task* task_around(const Graph& graph) noexcept {
  for (const RunningTask* each = running_here; each; each = each->outer())
    if (&each->graph() == &graph && each->task()) return each->task();
  return nullptr;
}

WaitedFor::WaitedFor(const Engines& engines) noexcept
    : before_(std::exchange(waiting_engines, &engines)) {}

WaitedFor::~WaitedFor() { waiting_engines = before_; }

const Graph* EngineAccess::graph(const Engine& engine) { return &engine.checked().graph; }

namespace {

bool is_occupied(const Engine& engine) {
  const Engines occupied = occupied_engines();
  return std::ranges::find(occupied, EngineAccess::graph(engine)) != occupied.end();
}

}  // namespace

bool runs_here(const Engine& engine) {
  return EngineAccess::running(engine) != 0 || is_occupied(engine);
}

bool may_await(const Engine& engine) {
  if (is_occupied(engine)) return false;
  BlockingThreads::leave_place();
  return true;
}

void call_apart(const Engine& engine, const std::function<void()>& call) {
  const RunningTask none(*EngineAccess::graph(engine), nullptr);
  call();
}

}  // namespace quadriga
