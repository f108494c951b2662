// SPDX-License-Identifier: BSD-3-Clause
// src/message/schedules/step_cache.h: a rank's steps of the collectives that it calls often.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "message/schedules/rank_offer.h"
#include "message/schedules/steps.h"

namespace quadriga::message {

/// Steps among processes of one host, of data in its memory or in that of devices. Used by one
/// thread at a time.
class StepCache {
 public:
  /// What the cost model takes a message between two processes of a host to cost beside its bytes.
  static constexpr double latency_seconds = 4e-6;
  /// The same plan on all ranks, since it depends on the arguments only: `offer` is what all ranks
  /// can.
  std::shared_ptr<const RankSteps> steps(int ranks, int own, const CollectiveShape& shape,
                                         const TreeOptions& forced, const RankOffer& offer = {}) {
    return known(ranks, own, shape, forced, offer).steps;
  }
  struct Known {
    CollectiveShape shape;
    TreeOptions forced;
    RankOffer offer;
    std::shared_ptr<const RankSteps> steps;
    std::string plan;  ///< In words.
    double seconds = 0;
  };
  /// With what the plan says of itself; until the next call.
  const Known& known(int ranks, int own, const CollectiveShape& shape, const TreeOptions& forced,
                     const RankOffer& offer);
  /// How it is cut, and along which trees.
  static SchedulePlan plan(int ranks, const CollectiveShape& shape, TreeOptions forced,
                           const RankOffer& offer);
  /// What the plan takes the ranks to be joined by.
  static Cluster cluster(int ranks, const RankOffer& offer);

 private:
  std::vector<Known> known_;
  std::size_t next_ = 0;
};

}  // namespace quadriga::message
