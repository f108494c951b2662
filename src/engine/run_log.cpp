// SPDX-License-Identifier: BSD-3-Clause
// src/engine/run_log.cpp: who may write the schedule's log, and where to.
#include "engine/run_log.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include "base/file.h"

namespace quadriga {

ScheduleLog* RunLog::open(const std::string& path) {
  if (path.empty() || !claim_.take()) return nullptr;
  require_regular(path);
  file_.open(path);
  if (!file_) fail(Errc::io, fmt::format("can't write the schedule's log '{}'", path));
  return &log_.emplace(file_);
}

}  // namespace quadriga
