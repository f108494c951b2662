// SPDX-License-Identifier: BSD-3-Clause
// tests/model/graph/own_workspace.h: a task's workspace, in which nobody else may write while its
// body runs.
#pragma once

#include <fmt/format.h>
#include <quadriga/codelet.h>
#include <quadriga/error.h>

#include <algorithm>

#include "base/random.h"

namespace quadriga {

/// Filled when it is made, and looked at again at the end of a body.
class OwnWorkspace {
 public:
  /// Errors: internal if it has another size than the codelet stated.
  OwnWorkspace(const Arguments& call, std::size_t stated, std::uint64_t salt)
      : memory_(call.workspace), mark_(static_cast<std::byte>(mix(salt))) {
    if (memory_.size() != stated || (stated > 0 && !memory_.data()))
      fail(Errc::internal, fmt::format("a task has a workspace of {} bytes at {}, of {} stated",
                                       memory_.size(), static_cast<void*>(memory_.data()), stated));
    std::ranges::fill(memory_, mark_);
  }
  /// Errors: internal if somebody wrote there meanwhile.
  void check() const {
    if (std::ranges::any_of(memory_, [this](std::byte each) { return each != mark_; }))
      fail(Errc::internal, "somebody else wrote to a task's workspace");
  }

 private:
  std::span<std::byte> memory_;
  std::byte mark_;
};

}  // namespace quadriga
