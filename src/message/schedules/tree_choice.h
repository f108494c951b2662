// SPDX-License-Identifier: BSD-3-Clause
// src/message/schedules/tree_choice.h: which trees a collective uses and how it is cut: chosen by
// predicted time, or forced.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "message/schedules/tree.h"

namespace quadriga::message {

/// Collectives along trees: segments that go up a tree (combined), down it, or both.
enum class TreeCollective : std::uint8_t {
  broadcast,
  reduce,
  all_reduce,
  reduce_scatter,
  all_gather
};
std::string_view name(TreeCollective kind) noexcept;

struct CollectiveShape {
  TreeCollective kind = TreeCollective::broadcast;
  int root = 0;  ///< Of broadcast and reduce.
  /// Of the data; for reduce_scatter and all_gather of each rank's part.
  std::vector<std::int64_t> bytes;
  std::int64_t element_bytes = 1;  ///< No segment ends within one.
  bool operator==(const CollectiveShape&) const = default;
};

/// What is forced; the rest is chosen.
struct TreeOptions {
  /// One a level of the cluster, the outermost first; the last one holds for all below.
  std::vector<TreeShape> shapes{};
  std::int64_t segment_bytes = 0;
  /// Leaders of each group that share the traffic between groups, segment by segment.
  int leaders = 0;
  /// all_reduce: whether each segment has a root of its own (chains of such trees are the ring:
  /// reduce-scatter and allgather), or all have the same.
  std::optional<bool> rotates{};
  /// Combines in an order that follows from the number of ranks and the root only, not from where
  /// ranks are or from the size.
  bool reproducible = false;
  bool operator==(const TreeOptions&) const = default;
};

struct ScheduleSegment {
  int tree = 0;
  std::int64_t input = 0;   ///< Offset in what each rank gives; for all_gather, of the tree's root.
  std::int64_t output = 0;  ///< Offset in what ranks get.
  std::int64_t bytes = 0;
};

struct SchedulePlan {
  CollectiveShape shape;
  TreeOptions options;             ///< With what was chosen.
  std::vector<RankTree> up, down;  ///< By the segments' tree; up is empty if nothing is combined.
  std::vector<ScheduleSegment> segments;
  double predicted_seconds = 0;
  std::string text() const;
};

/// Errors: invalid_argument for a root, sizes or options that no plan has.
SchedulePlan plan_collective(const Cluster& cluster, const CollectiveShape& shape,
                             const TreeOptions& options);
/// As the options say, which must say all.
SchedulePlan forced_plan(const Cluster& cluster, const CollectiveShape& shape,
                         const TreeOptions& options);

/// Seconds by the cost model: the way of the first segment along the deepest tree, then a segment
/// each time that the busiest wire, reducing rank or channel is through with one.
double predicted_seconds(const Cluster& cluster, const SchedulePlan& plan);

}  // namespace quadriga::message
