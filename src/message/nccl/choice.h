// SPDX-License-Identifier: BSD-3-Clause
// src/message/nccl/choice.h: which collectives NCCL may carry out, and when it does: pure, of what
// all ranks have agreed on.
#pragma once

#include <quadriga/message_types.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "message/schedules/tree_choice.h"

namespace quadriga::message {

/// Who carries out collectives of data in memory of GPUs.
enum class CollectiveBy : std::uint8_t {
  chosen,  ///< Whichever was measured faster.
  ours,    ///< Messages along trees.
  nccl     ///< NCCL where it can.
};

/// The numbers that NCCL has for elements and an operation.
struct NcclNumbers {
  int type = 0;
  int operation = 0;
  std::int64_t item_bytes = 1;  ///< Of what it counts.
  bool operator==(const NcclNumbers&) const = default;
};
/// Nothing where NCCL does something else, or it isn't sure to do the same: minimum and maximum of
/// what may be no number, sums of 16 bits, whatever is bitwise or logical. Without an operation
/// elements are bytes.
std::optional<NcclNumbers> nccl_numbers(TreeCollective kind, ElementType type,
                                        ReduceOperation operation);

/// What a rank can do with NCCL; travels with the agreement, as RankOffer.
struct NcclOffer {
  /// The library's, and a group of ranks (NcclGroups) that this one's device belongs to; 0: none.
  std::uint32_t version_least = 0, version_greatest = 0, group_least = 0, group_greatest = 0;

  NcclOffer() = default;
  NcclOffer(std::uint32_t version, std::uint32_t group)
      : version_least(version),
        version_greatest(version),
        group_least(group),
        group_greatest(group) {}
  /// Of two ranks.
  NcclOffer and_also(const NcclOffer& other) const noexcept;
  /// Whether all have the same version of it.
  bool is_with_all() const noexcept {
    return version_least != 0 && version_least == version_greatest;
  }
  /// The group that all mean; 0: they mean none, or several.
  std::uint32_t group() const noexcept { return group_least == group_greatest ? group_least : 0; }
};

/// Where a rank is, as it tells the others before a group is made.
struct NcclPlace {
  std::uint64_t device = 0;  ///< Not two of a host have the same; 0: it isn't known.
  std::int64_t process = 0;
};
/// Whether NCCL joins such ranks: each with a device and a process of its own.
bool may_join(std::span<const NcclPlace> ranks);

/// Seconds that one way of a kind of collective took, with few bytes and with many.
struct WaySeconds {
  double few = 0, many = 0;
  WaySeconds slowest(const WaySeconds& other) const noexcept {
    return {std::max(few, other.few), std::max(many, other.many)};
  }
};
/// Both ways of one kind, by the slowest rank each: latency and bytes over rate (Hockney's model).
struct MeasuredWays {
  std::int64_t few_bytes = 0, many_bytes = 0;
  WaySeconds ours, nccl;
  double seconds(const WaySeconds& way, std::int64_t bytes) const noexcept;
  /// By a twentieth at least; beyond what was measured as at its end: there lines tell little.
  bool is_nccl_faster(std::int64_t bytes) const noexcept {
    const std::int64_t known = std::min(bytes, many_bytes);
    return seconds(nccl, known) < 0.95 * seconds(ours, known);
  }
};

}  // namespace quadriga::message
