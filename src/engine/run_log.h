// SPDX-License-Identifier: BSD-3-Clause
// src/engine/run_log.h: the file to which an engine's schedule is logged, if it is.
#pragma once

#include <fstream>
#include <optional>
#include <string>

#include "engine/log_claim.h"
#include "schedule/schedule_log.h"

namespace quadriga {

class RunLog {
 public:
  /// Opens the file that the setting names; null if it names none, or another engine of the process
  /// writes it. Errors: io naming the file if it can't be written.
  ScheduleLog* open(const std::string& path);

 private:
  LogClaim claim_;
  std::ofstream file_;
  std::optional<ScheduleLog> log_;
};

}  // namespace quadriga
