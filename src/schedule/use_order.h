// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/use_order.h: the uses of a tile by one device's tasks, whose first is always known.
//
// Most come in the order of the plan, or nearly: they are a list. What would have to go far from
// its end is in a pairing heap instead, so that no order of coming makes an insertion long. All
// links lie in the accesses: nothing is allocated.
// Source: Fredman, Sedgewick, Sleator, Tarjan, The pairing heap: a new form of self-adjusting heap,
// Algorithmica 1, 1986.
//
// Invariants
//   1. Each access is in the list or in the heap, as its `in_heap` says.
//   2. The list ascends; in the heap each access comes after its parent.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quadriga {

struct PlannedAccess;

/// Of an access in an order.
struct UseLinks {
  PlannedAccess* before = nullptr;  ///< In the heap: the sibling before, or the first's parent.
  PlannedAccess* next = nullptr;    ///< In the heap: the next sibling.
  PlannedAccess* child = nullptr;   ///< The first of those behind it in the heap.
  bool in_heap = false;
};

/// Uses by their position in the plan; those of one task by operand.
class UseOrder {
 public:
  /// Null if there are none.
  PlannedAccess* first() const noexcept;
  /// The position of the first one behind a position; UINT64_MAX if there is none. Cost: by the
  /// uses up to there.
  std::uint64_t next_after(std::uint64_t position) const noexcept;
  /// The same behind a use that is in this order. Cost: constant in the list.
  std::uint64_t next_behind(const PlannedAccess& access) const noexcept;
  /// Cost: constant.
  void insert(PlannedAccess& access) noexcept;
  /// It is in this order. Cost: constant in the list, else on average the logarithm of the heap.
  void erase(PlannedAccess& access) noexcept;
  /// How many there are. Throws internal if an invariant is broken.
  std::size_t validate() const;

 private:
  /// Of the list only what begins with `use` is looked at.
  std::uint64_t next_from(const PlannedAccess* use, std::uint64_t position) const noexcept;
  std::size_t validate_list() const;
  std::size_t validate_heap() const;

  PlannedAccess* head_ = nullptr;
  PlannedAccess* tail_ = nullptr;
  PlannedAccess* heap_ = nullptr;
  std::uint64_t last_position_ = 0;  ///< The tail's, if there is one.
};

}  // namespace quadriga
