// SPDX-License-Identifier: BSD-3-Clause
// src/memory/host_nodes.h: which NUMA node of the host a buffer is taken from.
//
// Pure. The host is one space, whatever its nodes: one limit, one eviction. A node's memory is no
// limit but a preference, as the system takes pages from another node where one is full.
//
// Invariants
//   1. What a node's buffers take is what take() said of it, less what give_back() said.
//   2. A buffer lies on the node that it is for if that has room, else on the one with most room;
//      where none has room, on the one that it is for.
#pragma once

#include <quadriga/machine.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace quadriga {

class HostNodes {
 public:
  /// Fewer than two nodes are as good as none: all buffers lie on any_node.
  explicit HostNodes(std::span<const Node> nodes = {}) {
    if (nodes.size() < 2) return;
    for (const Node& node : nodes) nodes_.push_back({node.index, node.memory_bytes});
  }

  bool are_several() const noexcept { return !nodes_.empty(); }
  /// Where a buffer of these bytes lies best that is for a node, or for any of them.
  int choose(std::size_t bytes, int near) const noexcept {
    const Used* best = nullptr;
    const Used* wanted = nullptr;
    for (const Used& node : nodes_) {
      if (node.index == near) wanted = &node;
      if (!best || node.room() > best->room()) best = &node;
    }
    if (!best) return any_node;
    const bool has_room = best->room() >= bytes;
    return wanted && (wanted->room() >= bytes || !has_room) ? wanted->index : best->index;
  }
  void take(int node, std::size_t bytes) noexcept {
    if (Used* const found = find(node)) found->used += bytes;
  }
  void give_back(int node, std::size_t bytes) noexcept {
    if (Used* const found = find(node)) found->used -= bytes;
  }
  /// Bytes in use on a node; 0 for what is none.
  std::size_t used(int node) const noexcept {
    const auto found = std::ranges::find(nodes_, node, &Used::index);
    return found == nodes_.end() ? 0 : found->used;
  }

 private:
  struct Used {
    int index = any_node;
    std::size_t memory_bytes = 0;
    std::size_t used = 0;
    std::size_t room() const noexcept { return memory_bytes - std::min(used, memory_bytes); }
  };
  Used* find(int node) noexcept {
    const auto found = std::ranges::find(nodes_, node, &Used::index);
    return found == nodes_.end() ? nullptr : &*found;
  }

  std::vector<Used> nodes_;
};

}  // namespace quadriga
