// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/host_time.cpp: tasks that take time.
#include "pipeline/host_time.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <cmath>
#include <utility>

namespace quadriga {

double stated_seconds(const Pipeline::Seconds& seconds, const Chunk& chunk) {
  const double stated = seconds(chunk);
  if (!std::isfinite(stated) || stated < 0)
    fail(Errc::invalid_argument,
         fmt::format("takes(): expected seconds, at least 0, got {}", stated));
  return stated;
}

HostTime::HostTime(Engine& engine) : engine_(engine) {
  codelet_.name = "stage on the host";
  codelet_.host_only = true;
  codelet_.cost = [](const Arguments& arguments) {
    return Cost::of_seconds(arguments.param<double>());
  };
  codelet_.cpu = [](const Arguments&) {};
}

std::unique_ptr<TaskGroup> HostTime::pass(double seconds, std::function<void()> then) {
  auto group = std::make_unique<TaskGroup>();
  group->on_end = std::move(then);
  EngineAccess::submit(engine_, codelet_, {}, std::as_bytes(std::span(&seconds, 1)), {},
                       group.get());
  group->close();
  return group;
}

}  // namespace quadriga
