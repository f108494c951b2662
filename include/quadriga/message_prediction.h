// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/message_prediction.h: which path a message takes, and how long each would take.
#pragma once

#include <optional>
#include <string>

namespace quadriga::message {

/// One path that a message may take.
struct PredictedPath {
  /// "slot", "read", "pieces", "mapped", "staged", or "copy" within a rank (docs/messages.md).
  std::string name;
  /// Seconds one way to a receive that was posted before; nothing where no rate is known.
  std::optional<double> seconds;
  bool is_chosen = false;  ///< Of exactly one of a message's paths.
  std::string why;         ///< It is chosen, or isn't.
};

}  // namespace quadriga::message
