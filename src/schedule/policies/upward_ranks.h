// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/policies/upward_ranks.h: the longest path from a task to the end of the graph, as
// far as it was submitted.
//
// Pure. Ranks are brought up to date when an eighth of the graph is new, from its end to its
// beginning: a task costs a constant number of visits on average, however long its paths are.
//
// Source:  Topcuoglu, Hariri, Wu, IEEE TPDS 13 (3), 2002, section 3.
#pragma once

#include <quadriga/policy.h>

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

namespace quadriga {

class UpwardRanks {
 public:
  /// The mean time of copies between devices: so many seconds, and so many for each byte.
  UpwardRanks(double latency, double seconds_a_byte)
      : latency_(latency), seconds_a_byte_(seconds_a_byte) {}

  /// In order of submission. A task follows the last that wrote what it accesses, and those that
  /// have read what it writes.
  void submitted(const TaskNews& news);
  void ended(std::uint64_t id);
  /// Seconds, its own mean time included; 0 if the task is unknown.
  double rank(std::uint64_t id);

 private:
  using Number = std::uint64_t;  ///< Counts tasks.
  struct Edge {
    Number from = 0;
    double copy_seconds = 0;
  };
  struct Node {
    std::uint64_t id = 0;
    double seconds = 0;
    double rank = 0;
    bool ended = false;
    std::vector<Edge> edges;  ///< From what it follows.
  };
  struct Tile {
    Number writer = 0;  ///< One more than its number; 0: none.
    std::vector<Number> readers;
  };
  void follow(Node& node, Number from, double copy_seconds) const;
  void sweep();

  double latency_;
  double seconds_a_byte_;
  Number first_ = 0;  ///< The number of nodes_.front().
  Number swept_ = 0;  ///< Those before it are up to date.
  std::deque<Node> nodes_;
  std::unordered_map<std::uint64_t, Number> numbers_;  ///< By id, of tasks that haven't ended.
  std::unordered_map<std::uint32_t, Tile> tiles_;
};

}  // namespace quadriga
