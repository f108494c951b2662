// SPDX-License-Identifier: BSD-3-Clause
// src/graph/subgraph.h: the fine tasks that a task was divided into, and which follows which.
//
// Pure. Invariants
//   1. Edges go from a task to one that was added later; so running tasks in order is right.
//   2. A task that writes a region follows its last writer and those who read it since; one that
//      reads it, its last writer. The same holds for each region that shares a byte with it.
//   3. Each operand is part of one of the divided task's, which is written if the operand is.
//   4. A region of one type has one place, found by its address in `table_`, whose size is a power
//      of two and at least twice their number. Lists of places and readers are chains in `links_`.
#pragma once

#include <quadriga/division.h>

#include <cstdint>
#include <vector>

#include "graph/regions.h"

namespace quadriga {

class Subgraph {
 public:
  /// `name`, `access` and `operands` of the divided task; they must outlive this.
  Subgraph(std::string_view name, std::span<const Access> access, std::span<const View> operands)
      : name_(name), access_(access), operands_(operands) {}

  /// Errors: as Division::add(); nothing is added then.
  void add(const Codelet& codelet, std::span<const View> operands,
           std::span<const std::byte> params);

  /// Of the divided task's codelet.
  std::string_view name() const noexcept { return name_; }
  std::size_t size() const noexcept { return tasks_.size(); }
  const Codelet& codelet(std::size_t task) const noexcept { return *tasks_[task].codelet; }
  /// Valid until add().
  Arguments arguments(std::size_t task) const noexcept;
  /// The number of edges to a task; two tasks are joined by one at most.
  std::uint32_t predecessors(std::size_t task) const noexcept { return tasks_[task].predecessors; }
  template <class Visit>
  void each_successor(std::size_t task, Visit&& visit) const {
    for (std::uint32_t edge = tasks_[task].first_edge; edge != none; edge = edges_[edge].next)
      visit(std::size_t{edges_[edge].to});
  }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;

  struct FineTask {
    const Codelet* codelet;
    std::uint32_t first_view;
    std::uint32_t first_param;
    std::uint32_t params;
    std::uint32_t predecessors = 0;
    std::uint32_t first_edge = none;
  };
  struct Edge {
    std::uint32_t to;
    std::uint32_t next;
  };
  struct Link {
    std::uint32_t number;
    std::uint32_t next;
  };
  /// What fine tasks access: a region and who did so last.
  struct Place {
    Region region;
    DType dtype;
    bool may_write;  ///< The divided task writes what it is part of.
    std::uint32_t next_of_slot;
    std::uint32_t writer = none;
    std::uint32_t readers = none;   ///< Since it was written; first link.
    std::uint32_t overlaps = none;  ///< Other places that share bytes with it; first link.
  };
  /// The bytes between a place's first and its last one.
  struct Extent {
    std::uintptr_t begin;
    std::uintptr_t end;
  };

  [[noreturn]] void refuse(const Codelet& codelet, const std::string& why) const;
  void check(const Codelet& codelet, std::span<const View> operands,
             std::span<const std::byte> params) const;
  /// The place of operand `index`, which is not empty. Errors: as add().
  std::uint32_t place_of(const Codelet& codelet, std::span<const View> operands, std::size_t index);
  std::uint32_t add_place(const Region& region, DType dtype, bool may_write);
  void grow_table();
  std::size_t slot_of(std::uintptr_t address) const noexcept;
  void push(std::uint32_t& list, std::uint32_t number);
  void follow(const Place& place, bool written);
  void add_edge(std::uint32_t from);

  std::string_view name_;
  std::span<const Access> access_;
  std::span<const View> operands_;
  std::vector<FineTask> tasks_;
  std::vector<Edge> edges_;
  std::vector<View> views_;
  std::vector<std::byte> params_;
  std::vector<Place> places_;
  std::vector<Extent> extents_;  ///< Of each place.
  std::vector<Link> links_;
  std::vector<std::uint32_t> table_;  ///< First place of a slot.
  std::vector<std::uint32_t> at_;     ///< Places of the operands of the task being added.
};

}  // namespace quadriga
