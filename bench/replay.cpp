// SPDX-License-Identifier: BSD-3-Clause
// bench/replay.cpp: decides a run once more by the log that the setting schedule_log made of it.
#include "schedule/replay.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <fstream>

#include "benchmarks.h"
#include "line.h"

namespace quadriga::bench {

void replay_log(const Settings& settings) {
  const std::string path = settings.text("log");
  std::ifstream file(path);
  if (!file) fail(Errc::io, fmt::format("can't read the log '{}' (--log FILE)", path));
  const double begin = now();
  const auto every = static_cast<std::uint64_t>(settings.integer("validate", 0, 0));
  const ReplayResult result = replay(file, every);
  const double seconds = now() - begin;
  if (!result.difference.empty())
    fail(Errc::internal, "decided otherwise than logged:\n" + result.difference);
  Line("replay")
      .add("value", static_cast<double>(result.instructions))
      .add("unit", "instructions")
      .add("bound", static_cast<double>(result.instructions))
      .add("events", static_cast<double>(result.events))
      .add("tasks", static_cast<double>(result.tasks))
      .add("seconds", seconds)
      .print();
}

}  // namespace quadriga::bench
