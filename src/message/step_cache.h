// SPDX-License-Identifier: BSD-3-Clause
// src/message/step_cache.h: a rank's steps of the collectives that it calls again and again.
#pragma once

#include <memory>
#include <vector>

#include "message/schedule_steps.h"

namespace quadriga::message {

/// Steps among processes of one host. Used by one thread at a time.
class StepCache {
 public:
  /// What the cost model takes a message between two processes of a host to cost beside its bytes.
  static constexpr double latency_seconds = 4e-6;
  /// The same plan on all ranks, since it depends on the arguments only.
  std::shared_ptr<const RankSteps> steps(int ranks, int own, const CollectiveShape& shape,
                                         const TreeOptions& forced);

 private:
  struct Known {
    CollectiveShape shape;
    TreeOptions forced;
    std::shared_ptr<const RankSteps> steps;
  };
  std::vector<Known> known_;
  std::size_t next_ = 0;
};

}  // namespace quadriga::message
