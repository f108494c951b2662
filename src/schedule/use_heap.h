// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/use_heap.h: the uses of a tile by one device's tasks, whose first is always known.
//
// A pairing heap whose links lie in the accesses: it allocates nothing, whatever the order in which
// uses come and go.
// Source: Fredman, Sedgewick, Sleator, Tarjan, The pairing heap: a new form of self-adjusting heap,
// Algorithmica 1, 1986.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quadriga {

struct PlannedAccess;

/// Of an access in a heap.
struct UseLinks {
  PlannedAccess* child = nullptr;   ///< The first of those behind it.
  PlannedAccess* next = nullptr;    ///< Its next sibling.
  PlannedAccess* before = nullptr;  ///< The sibling before it, or the parent of the first.
};

/// Uses in the order of the plan; of one task's by operand.
class UseHeap {
 public:
  PlannedAccess* first() const noexcept { return first_; }
  /// Cost: constant.
  void insert(PlannedAccess& access) noexcept;
  /// It is in this heap. Cost: on average the logarithm of the uses.
  void erase(PlannedAccess& access) noexcept;
  /// How many there are. Throws internal if one comes before its parent, or a link is wrong.
  std::size_t validate() const;

 private:
  PlannedAccess* first_ = nullptr;
};

}  // namespace quadriga
