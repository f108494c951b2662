// SPDX-License-Identifier: BSD-3-Clause
// src/message/schedules/tree_choice.cpp: candidates of trees and segments; the soonest is taken.
#include "message/schedules/tree_choice.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "message/schedules/simulation.h"
#include "message/schedules/steps.h"

namespace quadriga::message {
namespace {

bool is_per_rank(TreeCollective kind) {
  return kind == TreeCollective::reduce_scatter || kind == TreeCollective::all_gather;
}
bool goes_up(TreeCollective kind) {
  return kind != TreeCollective::broadcast && kind != TreeCollective::all_gather;
}
bool goes_down(TreeCollective kind) {
  return kind != TreeCollective::reduce && kind != TreeCollective::reduce_scatter;
}

void check(const Cluster& cluster, const CollectiveShape& shape, const TreeOptions& options) {
  const std::size_t sizes = is_per_rank(shape.kind) ? index(cluster.size()) : 1;
  require(shape.bytes.size() == sizes,
          fmt::format("{}: {} sizes; expected {}", name(shape.kind), shape.bytes.size(), sizes));
  require(shape.root >= 0 && shape.root < cluster.size(),
          fmt::format("{}: root {}; expected 0 to {}", name(shape.kind), shape.root,
                      cluster.size() - 1));
  require(shape.element_bytes > 0, "a schedule needs elements of at least a byte");
  for (const std::int64_t bytes : shape.bytes)
    require(bytes >= 0 && bytes % shape.element_bytes == 0,
            fmt::format("{}: {} bytes of elements of {}", name(shape.kind), bytes,
                        shape.element_bytes));
  require(options.segment_bytes >= 0, "a segment can't have less than 0 bytes");
  require(options.leaders >= 0 && options.leaders <= 64, "leaders: expected 0 to 64");
}

std::int64_t cut_to(std::int64_t bytes, std::int64_t element) {
  return std::max(element, bytes / element * element);
}

// Which trees: the root of each, who leads its groups, and which half of a split tree it serves.
std::vector<TreeWish> wishes_of(const Cluster& cluster, const CollectiveShape& shape,
                                const TreeOptions& options) {
  const bool splits =
      std::ranges::find(options.shapes, TreeShape::split_binary) != options.shapes.end();
  const int leaders = std::max(options.leaders, 1);
  std::vector<TreeWish> wishes;
  const auto add = [&](int root, int leader) {
    for (int half = 0; half < (splits ? 2 : 1); ++half)
      wishes.push_back({root, options.shapes, leader, half});
  };
  if (is_per_rank(shape.kind)) {
    // One a part; splitting would need several.
    for (int rank = 0; rank < cluster.size(); ++rank)
      wishes.push_back({rank, options.shapes, -1, 0});
  } else if (shape.kind == TreeCollective::all_reduce && options.rotates.value_or(false)) {
    for (int leader = 0; leader < leaders; ++leader)
      for (const std::vector<int>& group : outer_groups(cluster))
        add(group[index(leader) % group.size()], -1);
  } else {
    for (int leader = 0; leader < leaders; ++leader) add(shape.root, leaders > 1 ? leader : -1);
  }
  return wishes;
}

// Segments of the parts in turn, so that all trees are busy from the beginning.
std::vector<ScheduleSegment> segments_of(const CollectiveShape& shape, std::int64_t segment,
                                         int trees) {
  std::vector<ScheduleSegment> segments;
  if (!is_per_rank(shape.kind)) {
    int tree = 0;
    for (std::int64_t at = 0; at < shape.bytes.front(); at += segment) {
      segments.push_back({tree, at, at, std::min(segment, shape.bytes.front() - at)});
      tree = (tree + 1) % trees;
    }
    return segments;
  }
  const std::int64_t most = *std::ranges::max_element(shape.bytes);
  for (std::int64_t at = 0; at < most; at += segment) {
    std::int64_t begin = 0;
    for (std::size_t part = 0; part < shape.bytes.size(); ++part) {
      const std::int64_t bytes = std::min(segment, shape.bytes[part] - at);
      const bool scatters = shape.kind == TreeCollective::reduce_scatter;
      if (bytes > 0)
        segments.push_back({static_cast<int>(part), scatters ? begin + at : at,
                            scatters ? at : begin + at, bytes});
      begin += shape.bytes[part];
    }
  }
  return segments;
}

// The whole is what one tree's segments are cut from.
std::int64_t largest_part(const CollectiveShape& shape) {
  return *std::ranges::max_element(shape.bytes);
}

// Trees of a plan without its segments: the costly part, which doesn't depend on their size.
SchedulePlan with_trees(const Cluster& cluster, const CollectiveShape& shape,
                        const TreeOptions& options) {
  SchedulePlan plan{shape, options, {}, {}, {}, 0};
  const bool by_rank = options.reproducible && goes_up(shape.kind);
  for (const TreeWish& wish : wishes_of(cluster, shape, options)) {
    if (goes_up(shape.kind))
      plan.up.push_back(by_rank ? flat_tree(cluster.size(), wish.root, TreeShape::binomial)
                                : hierarchical_tree(cluster, wish));
    if (goes_down(shape.kind)) plan.down.push_back(hierarchical_tree(cluster, wish));
  }
  return plan;
}

void cut(SchedulePlan& plan, std::int64_t segment) {
  const std::int64_t element = plan.shape.element_bytes;
  plan.options.segment_bytes = cut_to(segment, element);
  const int trees = static_cast<int>(std::max(plan.up.size(), plan.down.size()));
  plan.segments = segments_of(plan.shape, plan.options.segment_bytes, trees);
}

// The best size of segments: powers of two, and between them.
void choose_segment(const Cluster& cluster, SchedulePlan& plan, std::int64_t forced) {
  constexpr std::int64_t least = 4096;
  constexpr std::int64_t most_segments = 4096;
  const std::int64_t whole = std::max<std::int64_t>(largest_part(plan.shape), 1);
  std::vector<std::int64_t> sizes{whole};
  for (std::int64_t size = least; size < whole; size *= 2)
    if (whole / size <= most_segments) {
      sizes.push_back(size);
      if (size + size / 2 < whole) sizes.push_back(size + size / 2);
    }
  if (forced > 0) sizes = {forced};
  std::int64_t best = sizes.front();
  double seconds = std::numeric_limits<double>::infinity();
  for (const std::int64_t size : sizes) {
    cut(plan, size);
    const double found = predicted_seconds(cluster, plan);
    // Larger ones of equal cost take less work.
    if (found < seconds * (size > best ? 1 : 1 - 1e-9)) {
      seconds = found;
      best = size;
    }
  }
  cut(plan, best);
  plan.predicted_seconds = seconds;
}

class Search {
 public:
  Search(const Cluster& cluster, const CollectiveShape& shape, const TreeOptions& options)
      : cluster_(cluster), shape_(shape), forced_(options) {}

  SchedulePlan best() {
    const int levels = std::max(1, levels_of(cluster_));
    std::vector<bool> rotations{false};
    if (shape_.kind == TreeCollective::all_reduce && !forced_.reproducible)
      rotations = forced_.rotates ? std::vector<bool>{*forced_.rotates} : std::vector{false, true};
    for (const bool rotates : rotations)
      for (const int leaders : numbers_of_leaders()) {
        TreeOptions options = forced_;
        options.rotates = rotates;
        options.leaders = leaders;
        candidates_.emplace_back();
        candidates_.back().predicted_seconds = std::numeric_limits<double>::infinity();
        if (!forced_.shapes.empty()) {
          look(options);
          continue;
        }
        // One level after the other, the others as they were.
        options.shapes.assign(index(levels), TreeShape::chain);
        double reached = look(options);
        for (std::size_t level = 0; level < options.shapes.size(); ++level)
          for (const TreeShape shape : tree_shapes) {
            TreeOptions other = options;
            other.shapes[level] = shape;
            if (other.shapes == options.shapes) continue;
            const double found = look(other);
            if (found < reached) {
              reached = found;
              options = other;
            }
          }
      }
    return std::move(candidates_[fastest()]);
  }

 private:
  // The model's choice; among numbers of leaders and ways to rotate by the clock, if that is short:
  // trees that share wires from their first segment on are where the model errs most.
  std::size_t fastest() {
    constexpr std::size_t most_steps = std::size_t{1} << 16;
    std::vector<double> seconds;
    bool is_short = candidates_.size() > 1;
    for (const SchedulePlan& each : candidates_) {
      seconds.push_back(each.predicted_seconds);
      is_short = is_short && each.segments.size() * index(cluster_.size()) <= most_steps;
    }
    if (is_short)
      for (std::size_t i = 0; i < candidates_.size(); ++i)
        seconds[i] = simulate(cluster_, schedule_of(cluster_, candidates_[i])).seconds;
    return static_cast<std::size_t>(std::ranges::min_element(seconds) - seconds.begin());
  }
  std::vector<int> numbers_of_leaders() const {
    if (forced_.leaders > 0) return {forced_.leaders};
    std::size_t most = 1;
    if (cluster_.nodes() > 1)
      for (const std::vector<int>& group : outer_groups(cluster_))
        most = std::max(most, group.size());
    std::vector<int> numbers{1};
    if (most > 1 && !is_per_rank(shape_.kind) && !forced_.reproducible)
      numbers.push_back(static_cast<int>(std::min<std::size_t>(most, 64)));
    return numbers;
  }
  double look(const TreeOptions& options) {
    SchedulePlan plan = with_trees(cluster_, shape_, options);
    choose_segment(cluster_, plan, forced_.segment_bytes);
    const double seconds = plan.predicted_seconds;
    if (seconds < candidates_.back().predicted_seconds) candidates_.back() = std::move(plan);
    return seconds;
  }

  const Cluster& cluster_;
  const CollectiveShape& shape_;
  const TreeOptions& forced_;
  std::vector<SchedulePlan> candidates_;  // The best for each number of leaders, rotating or not.
};

}  // namespace

std::string_view name(TreeCollective kind) noexcept {
  constexpr std::array names{"broadcast", "reduce", "allreduce", "reduce_scatter", "allgather"};
  return names[static_cast<std::size_t>(kind)];
}

std::string SchedulePlan::text() const {
  std::string levels;
  for (const TreeShape each : options.shapes)
    levels += fmt::format("{}{}", levels.empty() ? "" : " > ", name(each));
  return fmt::format(
      "{}: {}, {} tree{}{}, {} segments of {} B{}", name(shape.kind), levels,
      std::max(up.size(), down.size()), std::max(up.size(), down.size()) == 1 ? "" : "s",
      options.rotates.value_or(false) ? " with roots of their own" : "", segments.size(),
      options.segment_bytes, options.reproducible ? ", combined by the number of ranks" : "");
}

SchedulePlan forced_plan(const Cluster& cluster, const CollectiveShape& shape,
                         const TreeOptions& options) {
  check(cluster, shape, options);
  require(!options.shapes.empty() && options.segment_bytes > 0,
          "a plan that isn't chosen needs shapes and a segment");
  SchedulePlan plan = with_trees(cluster, shape, options);
  cut(plan, options.segment_bytes);
  plan.predicted_seconds = predicted_seconds(cluster, plan);
  return plan;
}

SchedulePlan plan_collective(const Cluster& cluster, const CollectiveShape& shape,
                             const TreeOptions& options) {
  check(cluster, shape, options);
  return Search(cluster, shape, options).best();
}

}  // namespace quadriga::message
