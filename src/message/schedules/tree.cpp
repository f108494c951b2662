// SPDX-License-Identifier: BSD-3-Clause
// src/message/schedules/tree.cpp: shapes, and trees of trees.
#include "message/schedules/tree.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "message/schedules/schedule.h"

namespace quadriga::message {
namespace {

// Which half of a binary tree a position belongs to: 1, or 2; 0 for the root.
int half_of(int position) {
  while (position > 2) position = (position - 1) / 2;
  return position;
}

// The half that isn't served by the tree gets everything from partners in the one that is.
std::vector<int> split_parents(int count, int half) {
  std::vector<int> parents(index(count), -1);
  std::vector<int> halves[2];
  for (int i = 1; i < count; ++i) halves[half_of(i) - 1].push_back(i);
  const std::vector<int>& served = halves[half];
  if (served.empty()) return parents_of(TreeShape::chain, count);
  for (const int i : served) parents[index(i)] = (i - 1) / 2;
  const std::vector<int>& others = halves[1 - half];
  for (std::size_t i = 0; i < others.size(); ++i)
    parents[index(others[i])] = served[std::min(i, served.size() - 1)];
  return parents;
}

using Ranks = std::vector<int>;

bool nearer(const Cluster& cluster, int a, int b) {
  const RankPlace& x = cluster.place(a);
  const RankPlace& y = cluster.place(b);
  return std::pair(x.node, x.index) < std::pair(y.node, y.index);
}

// The members' groups at a depth, sorted by place; ranks that belong to none are alone.
std::vector<Ranks> parts_of(const Cluster& cluster, const Ranks& members, std::size_t depth) {
  std::map<int, std::size_t> known;
  std::vector<Ranks> parts;
  for (const int rank : members) {
    const std::vector<int>& groups = cluster.place(rank).groups;
    if (depth >= groups.size()) {
      parts.push_back({rank});
      continue;
    }
    const auto [found, is_new] = known.try_emplace(groups[depth], parts.size());
    if (is_new) parts.emplace_back();
    parts[found->second].push_back(rank);
  }
  return parts;
}

// Groups with a single part are no level of their own.
std::vector<Ranks> divided(const Cluster& cluster, const Ranks& members, std::size_t& depth) {
  std::vector<Ranks> parts = parts_of(cluster, members, depth++);
  while (parts.size() == 1 && parts.front().size() > 1) parts = parts_of(cluster, members, depth++);
  return parts;
}

Ranks sorted_ranks(const Cluster& cluster) {
  Ranks ranks(index(cluster.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::ranges::sort(ranks, [&](int a, int b) { return nearer(cluster, a, b); });
  return ranks;
}

class TreeBuilder {
 public:
  TreeBuilder(const Cluster& cluster, const TreeWish& wish) : cluster_(cluster), wish_(wish) {
    tree_.root = wish.root;
    tree_.parent.assign(index(cluster.size()), -1);
    tree_.children.resize(index(cluster.size()));
  }

  // Joins the members to `entry`, which has the data; `first`, if any, is served before others.
  void join(const Ranks& members, std::size_t depth, int level, int entry, int first) {
    if (members.size() < 2) return;
    const std::vector<Ranks> parts = divided(cluster_, members, depth);
    // Beginning with the part of `entry`, then that of `first`, then going round.
    const std::size_t own = part_with(parts, entry);
    std::vector<std::size_t> order{own};
    if (first >= 0 && part_with(parts, first) != own) order.push_back(part_with(parts, first));
    for (std::size_t i = 1; i < parts.size(); ++i) {
      const std::size_t next = (own + i) % parts.size();
      if (std::ranges::find(order, next) == order.end()) order.push_back(next);
    }
    Ranks leaders;
    for (const std::size_t part : order) {
      const bool has_first = first >= 0 && part_with(parts, first) == part;
      leaders.push_back(part == own ? leader_of_own(parts[part], entry, level)
                                    : (has_first ? first : leader_of(parts[part])));
    }
    connect(leaders, level);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const bool is_own = order[i] == own;
      const bool leads = !is_own || leaders[i] == entry;
      join(parts[order[i]], depth, level + 1, is_own ? entry : leaders[i],
           leads ? (is_own ? first_in(parts[own], first) : -1) : leaders[i]);
    }
  }

  RankTree take() { return std::move(tree_); }

 private:
  static std::size_t part_with(const std::vector<Ranks>& parts, int rank) {
    const auto has = [rank](const Ranks& part) {
      return std::ranges::find(part, rank) != part.end();
    };
    return static_cast<std::size_t>(std::ranges::find_if(parts, has) - parts.begin());
  }
  static int first_in(const Ranks& part, int first) {
    return std::ranges::find(part, first) != part.end() ? first : -1;
  }
  int leader_of(const Ranks& part) const {
    return part[index(std::max(wish_.leader, 0)) % part.size()];
  }
  // Who passes the data on to other groups: the entry itself, or counted from it.
  int leader_of_own(const Ranks& part, int entry, int level) const {
    if (wish_.leader < 0 || level > 0) return entry;
    const auto at = static_cast<std::size_t>(std::ranges::find(part, entry) - part.begin());
    return part[(at + index(wish_.leader)) % part.size()];
  }
  void connect(const Ranks& leaders, int level) {
    const TreeShape shape = wish_.shapes[std::min(index(level), wish_.shapes.size() - 1)];
    const int count = static_cast<int>(leaders.size());
    const std::vector<int> parents = parents_of(shape, count, wish_.half);
    const auto add = [&](int i) {
      const int parent = leaders[index(parents[index(i)])];
      tree_.parent[index(leaders[index(i)])] = parent;
      tree_.children[index(parent)].push_back(leaders[index(i)]);
    };
    // A binomial tree's largest subtrees first.
    for (int i = 1; i < count; ++i) add(shape == TreeShape::binomial ? count - i : i);
  }

  const Cluster& cluster_;
  const TreeWish& wish_;
  RankTree tree_;
};

int levels_below(const Cluster& cluster, const Ranks& members, std::size_t depth) {
  if (members.size() < 2) return 0;
  int most = 0;
  for (const Ranks& part : divided(cluster, members, depth))
    most = std::max(most, levels_below(cluster, part, depth));
  return most + 1;
}

}  // namespace

std::string_view name(TreeShape shape) noexcept {
  constexpr std::array names{"linear", "chain", "binary", "binomial", "split_binary"};
  return names[static_cast<std::size_t>(shape)];
}

TreeShape tree_shape(std::string_view text) {
  for (const TreeShape each : tree_shapes)
    if (name(each) == text) return each;
  fail(Errc::invalid_argument,
       fmt::format("no algorithm '{}'; expected linear, chain, binary, binomial or split_binary",
                   text));
}

std::vector<int> parents_of(TreeShape shape, int count, int half) {
  if (shape == TreeShape::split_binary) return split_parents(count, half);
  std::vector<int> parents(index(count), -1);
  for (int i = 1; i < count; ++i) {
    switch (shape) {
      case TreeShape::linear:
        parents[index(i)] = 0;
        break;
      case TreeShape::chain:
        parents[index(i)] = i - 1;
        break;
      case TreeShape::binary:
        parents[index(i)] = (i - 1) / 2;
        break;
      default:
        parents[index(i)] = i & (i - 1);
    }
  }
  return parents;
}

RankTree hierarchical_tree(const Cluster& cluster, const TreeWish& wish) {
  TreeBuilder builder(cluster, wish);
  builder.join(sorted_ranks(cluster), 0, 0, wish.root, -1);
  return builder.take();
}

RankTree flat_tree(int ranks, int root, TreeShape shape) {
  const Cluster flat = Cluster::host(ranks, 1, 0);
  return hierarchical_tree(flat, {root, {shape}, -1, 0});
}

int levels_of(const Cluster& cluster) { return levels_below(cluster, sorted_ranks(cluster), 0); }

std::vector<std::vector<int>> outer_groups(const Cluster& cluster) {
  std::size_t depth = 0;
  return divided(cluster, sorted_ranks(cluster), depth);
}

}  // namespace quadriga::message
