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
/// those of the log. Touches none of the memory that the log names. The scheduler's invariants are
/// checked after every so many events, never if that is 0; each check looks at all that it holds.
///
/// Errors:  io naming the line if it isn't a log of this form, or ends within one.
///          internal if an invariant doesn't hold.
ReplayResult replay(std::istream& log, std::uint64_t validate_every = 0);

}  // namespace quadriga
