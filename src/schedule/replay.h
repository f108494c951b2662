// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/replay.h: decides a logged run once more, without devices, and compares.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

namespace quadriga {

struct ReplayResult {
  std::uint64_t events = 0;
  std::uint64_t instructions = 0;  ///< Of the log.
  std::uint64_t tasks = 0;
  /// The first line that differs, as logged and as decided now; empty if none does.
  std::string difference;
};

/// Gives the events of a log (see log.h) to a new scheduler and compares its instructions with
/// those of the log. Touches none of the memory that the log names.
///
/// Errors:  io naming the line if it isn't a log of this form, or ends within one.
ReplayResult replay(std::istream& log);

}  // namespace quadriga
