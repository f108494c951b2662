// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/policies/upward_ranks.cpp: edges from the tiles that tasks access, ranks from the
// end of the graph to its beginning.
#include "schedule/policies/upward_ranks.h"

#include <algorithm>
#include <cmath>

namespace quadriga {

void UpwardRanks::follow(Node& node, const Ref& from, double copy_seconds) const {
  if (is_there(from)) node.edges.push_back({from, copy_seconds});
}

UpwardRanks::Place UpwardRanks::append() {
  if (free_.empty()) {
    free_.push_back(static_cast<Place>(nodes_.size()));
    nodes_.emplace_back();
  }
  const Place place = free_.back();
  free_.pop_back();
  Node& node = nodes_[place];
  node.number = ++submitted_;
  node.seconds = 0;
  node.before = last_;
  node.after = none;
  node.edges.clear();
  if (last_ != none) nodes_[last_].after = place;
  last_ = place;
  ++unswept_;
  return place;
}

void UpwardRanks::submitted(const TaskNews& news) {
  const Place place = append();
  Node& node = nodes_[place];
  const Ref self{place, node.number};
  double known = 0;
  for (const double seconds : news.kernel_seconds) {
    if (!(seconds > 0) || !std::isfinite(seconds)) continue;
    node.seconds += seconds;
    ++known;
  }
  if (known > 0) node.seconds /= known;
  node.rank = node.seconds;
  for (const OperandView& operand : news.task.operands) {
    Tile& tile = tiles_[operand.tile];
    follow(node, tile.writer,
           operand.access == Access::write
               ? 0
               : latency_ + static_cast<double>(operand.bytes) * seconds_a_byte_);
    if (operand.access == Access::read) {
      if (tile.readers.size() >= 2 * places_.size() + 8)
        std::erase_if(tile.readers, [&](const Ref& reader) { return !is_there(reader); });
      tile.readers.push_back(self);
      continue;
    }
    for (const Ref& reader : tile.readers) follow(node, reader, 0);
    tile.readers.clear();
    tile.writer = self;
  }
  places_[news.task.id] = place;
}

void UpwardRanks::ended(std::uint64_t id) {
  const auto found = places_.find(id);
  if (found == places_.end()) return;
  const Place place = found->second;
  Node& node = nodes_[place];
  if (node.number > swept_) --unswept_;
  if (node.before != none) nodes_[node.before].after = node.after;
  (node.after != none ? nodes_[node.after].before : last_) = node.before;
  node.number = 0;
  free_.push_back(place);
  places_.erase(found);
}

double UpwardRanks::rank(std::uint64_t id) {
  const auto found = places_.find(id);
  if (found == places_.end()) return 0;
  if (unswept_ > places_.size() / 8) sweep();
  return nodes_[found->second].rank;
}

void UpwardRanks::sweep() {
  for (Place place = last_; place != none; place = nodes_[place].before) {
    const Node& node = nodes_[place];
    for (const Edge& edge : node.edges) {
      if (!is_there(edge.from)) continue;
      Node& before = nodes_[edge.from.place];
      before.rank = std::max(before.rank, before.seconds + edge.copy_seconds + node.rank);
    }
  }
  swept_ = submitted_;
  unswept_ = 0;
}

}  // namespace quadriga
