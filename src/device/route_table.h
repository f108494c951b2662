// SPDX-License-Identifier: BSD-3-Clause
// src/device/route_table.h: the routes of a machine by their ends, looked up once.
#pragma once

#include <quadriga/machine.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace quadriga {

/// Machine::route() as an index into `routes`. Cost of an answer: constant, however many routes
/// there are; memory: a table of the spaces for each node with routes of its own, whatever its
/// number.
class RouteTable {
 public:
  static constexpr int none = -1;

  explicit RouteTable(const Machine& machine)
      : spaces_(static_cast<std::size_t>(machine.spaces())), nodes_{any_node} {
    for (const Route& route : machine.routes)
      if (std::ranges::find(nodes_, route.node) == nodes_.end()) nodes_.push_back(route.node);
    for (const int node : nodes_)
      for (SpaceId from = 0; from < spaces_; ++from)
        for (SpaceId to = 0; to < spaces_; ++to) {
          const Route* const route = machine.route(from, to, node);
          indices_.push_back(route ? static_cast<int>(route - machine.routes.data()) : none);
        }
  }

  /// Of the route of a copy whose end on the host lies on a node; `none` where no route joins the
  /// two spaces, also if the machine has no such spaces.
  int find(SpaceId from, SpaceId to, int node = any_node) const noexcept {
    return from < spaces_ && to < spaces_ ? indices_[place(from, to, node)] : none;
  }
  /// All answers, for those who keep something of each; that of two spaces and a node is here.
  const std::vector<int>& all() const noexcept { return indices_; }
  std::size_t place(SpaceId from, SpaceId to, int node) const noexcept {
    return (table_of(node) * spaces_ + from) * spaces_ + to;
  }

 private:
  /// Nodes without routes of their own are as good as unknown.
  std::size_t table_of(int node) const noexcept {
    for (std::size_t table = 1; table < nodes_.size(); ++table)
      if (nodes_[table] == node) return table;
    return 0;
  }

  std::size_t spaces_;
  std::vector<int> nodes_;  ///< Any node, then those with routes of their own: a table each.
  std::vector<int> indices_;
};

}  // namespace quadriga
