// SPDX-License-Identifier: BSD-3-Clause
// tests/model/graph/logged_run.h: a run whose schedule is logged, and the log.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "base/config.h"
#include "schedule/replay.h"

namespace quadriga {

/// What the scheduler of an engine that `run` makes and ends was told and decided.
template <class Run>
std::string logged_run(Run&& run) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / ("schedule-" + std::to_string(::getpid()));
  Config::global().set("schedule_log", path.string());
  run();
  Config::global().unset("schedule_log");
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  std::filesystem::remove(path);
  return text.str();
}

inline ReplayResult replay_text(const std::string& log) {
  std::istringstream lines(log);
  constexpr std::uint64_t validate_every = 7;
  return replay(lines, validate_every);
}

}  // namespace quadriga
