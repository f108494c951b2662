// SPDX-License-Identifier: BSD-3-Clause
// src/message/schedules/tree.h: trees over ranks, one shape a level of the cluster.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "message/schedules/cluster.h"

namespace quadriga::message {

/// Shapes of trees. `split_binary` is two of them: each half of the ranks gets its segments from
/// its own half of a binary tree and the others from a partner in the other half.
/// Source:  Pjesivac-Grbovic et al., Performance analysis of MPI collective operations, Cluster
///          Computing 10, 2007 (the shapes, and their costs by Hockney's model).
enum class TreeShape : std::uint8_t { linear, chain, binary, binomial, split_binary };
inline constexpr std::array tree_shapes{TreeShape::linear, TreeShape::chain, TreeShape::binary,
                                        TreeShape::binomial, TreeShape::split_binary};
std::string_view name(TreeShape shape) noexcept;
/// Errors: invalid_argument naming the shapes.
TreeShape tree_shape(std::string_view name);

/// The parent of each of `count` positions; -1 for position 0. `half` counts for split_binary only.
std::vector<int> parents_of(TreeShape shape, int count, int half = 0);

/// A tree over all ranks.
struct RankTree {
  int root = 0;
  std::vector<int> parent;                 ///< -1 for the root.
  std::vector<std::vector<int>> children;  ///< In the order in which they are served.
};

struct TreeWish {
  int root = 0;
  /// One a level, the outermost first; the last one holds for all below.
  std::vector<TreeShape> shapes{TreeShape::chain};
  /// Which member of each group leads it: the root where there is one, if this is -1.
  int leader = -1;
  int half = 0;  ///< Of split_binary.
};

/// One tree a level: the leaders of the groups form one, and within a group its members do, down
/// to single ranks. Depends on places alone: with ranks elsewhere the same places are joined.
/// Source:  the topology-aware tree of Wu, dissertation, University of Tennessee, 2017, 5.2.1.
RankTree hierarchical_tree(const Cluster& cluster, const TreeWish& wish);
/// The same shape by the numbers of ranks alone.
RankTree flat_tree(int ranks, int root, TreeShape shape);

/// How many levels of groups and ranks there are that have more than one member.
int levels_of(const Cluster& cluster);
/// The ranks of each of the outermost groups, sorted by place.
std::vector<std::vector<int>> outer_groups(const Cluster& cluster);

}  // namespace quadriga::message
