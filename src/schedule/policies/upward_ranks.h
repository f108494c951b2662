// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/policies/upward_ranks.h: the longest path from a task to the end of the graph, as
// far as it was submitted.
//
// Pure. Ranks are brought up to date when an eighth of the graph is new, from its end to its
// beginning: a task costs a constant number of visits on average, however long its paths are.
//
// Invariants
//   1. Nodes are of tasks that haven't ended, linked in order of submission; the place of an ended
//      one is the next task's. Who remembers a node has its number as well, which tells whether it
//      is still there.
//
// Source:  Topcuoglu, Hariri, Wu, IEEE TPDS 13 (3), 2002, section 3.
#pragma once

#include <quadriga/policy.h>

#include <cstdint>
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
  /// Places for nodes: as many as tasks were there at once.
  std::size_t places() const noexcept { return nodes_.size(); }

 private:
  using Place = std::uint32_t;
  static constexpr Place none = UINT32_MAX;
  struct Ref {
    Place place = none;
    std::uint64_t number = 0;
  };
  struct Edge {
    Ref from;
    double copy_seconds = 0;
  };
  struct Node {
    std::uint64_t number = 0;  ///< Counts tasks from 1; 0: the place is free.
    double seconds = 0;
    double rank = 0;
    Place before = none;
    Place after = none;
    std::vector<Edge> edges;  ///< From what it follows.
  };
  struct Tile {
    Ref writer;
    std::vector<Ref> readers;
  };
  bool is_there(const Ref& ref) const noexcept {
    return ref.place != none && nodes_[ref.place].number == ref.number;
  }
  void follow(Node& node, const Ref& from, double copy_seconds) const;
  Place append();
  void sweep();

  double latency_;
  double seconds_a_byte_;
  std::uint64_t submitted_ = 0;
  std::uint64_t swept_ = 0;  ///< Numbers up to this one are up to date.
  std::size_t unswept_ = 0;  ///< Nodes that aren't.
  std::vector<Node> nodes_;
  std::vector<Place> free_;
  Place last_ = none;
  std::unordered_map<std::uint64_t, Place> places_;  ///< By id.
  std::unordered_map<std::uint32_t, Tile> tiles_;
};

}  // namespace quadriga
