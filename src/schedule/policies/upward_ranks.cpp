// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/policies/upward_ranks.cpp: edges from the tiles that tasks access, ranks from the
// end of the graph to its beginning.
#include "schedule/policies/upward_ranks.h"

#include <algorithm>
#include <cmath>

namespace quadriga {

void UpwardRanks::follow(Node& node, Number from, double copy_seconds) const {
  if (from >= first_ && !nodes_[from - first_].ended) node.edges.push_back({from, copy_seconds});
}

void UpwardRanks::submitted(const TaskNews& news) {
  const Number number = first_ + nodes_.size();
  Node node;
  node.id = news.task.id;
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
    const bool writes = operand.access != Access::read;
    if (tile.writer > 0)
      follow(node, tile.writer - 1,
             operand.access == Access::write
                 ? 0
                 : latency_ + static_cast<double>(operand.bytes) * seconds_a_byte_);
    if (!writes) {
      if (tile.readers.size() >= 2 * nodes_.size() + 8)
        std::erase_if(tile.readers, [&](Number reader) { return reader < first_; });
      tile.readers.push_back(number);
      continue;
    }
    for (const Number reader : tile.readers) follow(node, reader, 0);
    tile.readers.clear();
    tile.writer = number + 1;
  }
  numbers_[news.task.id] = number;
  nodes_.push_back(std::move(node));
}

void UpwardRanks::ended(std::uint64_t id) {
  const auto found = numbers_.find(id);
  if (found == numbers_.end()) return;
  nodes_[found->second - first_].ended = true;
  numbers_.erase(found);
  for (; !nodes_.empty() && nodes_.front().ended; ++first_) nodes_.pop_front();
}

double UpwardRanks::rank(std::uint64_t id) {
  const auto found = numbers_.find(id);
  if (found == numbers_.end()) return 0;
  const Number behind = first_ + nodes_.size();
  if (behind - std::max(swept_, first_) > nodes_.size() / 8) sweep();
  return nodes_[found->second - first_].rank;
}

void UpwardRanks::sweep() {
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    const Node& node = nodes_[i];
    for (const Edge& edge : node.edges) {
      if (edge.from < first_) continue;
      Node& before = nodes_[edge.from - first_];
      before.rank = std::max(before.rank, before.seconds + edge.copy_seconds + node.rank);
    }
  }
  swept_ = first_ + nodes_.size();
}

}  // namespace quadriga
