// SPDX-License-Identifier: BSD-3-Clause
// src/message/wire/agreement.h: surviving ranks agree on who they are, waiting for nobody.
//
// Invariants
//   1. Each question has a key, and one place in the segment from the first rank that asks it on.
//   2. A rank writes its proposal before it tries to have it chosen, by compare-and-swap; the first
//      one is chosen, for all ranks and for good. So nobody waits, and a rank that ends at any
//      moment leaves the others with one answer.
//   3. What is read is checked: an answer from a rank that doesn't exist is refused.
#pragma once

#include <array>

#include "message/wire/segment.h"

namespace quadriga::message {

/// Ranks of a world, a bit each.
class RankSet {
 public:
  void add(int rank) noexcept { word(rank) |= bit(rank); }
  void remove(int rank) noexcept { word(rank) &= ~bit(rank); }
  bool has(int rank) const noexcept {
    return (words_[static_cast<std::size_t>(rank) / 64] & bit(rank)) != 0;
  }
  std::array<std::uint64_t, most_ranks / 64>& words() noexcept { return words_; }
  const std::array<std::uint64_t, most_ranks / 64>& words() const noexcept { return words_; }
  bool operator==(const RankSet&) const = default;

 private:
  static std::uint64_t bit(int rank) noexcept { return std::uint64_t{1} << (rank % 64); }
  std::uint64_t& word(int rank) noexcept { return words_[static_cast<std::size_t>(rank) / 64]; }
  std::array<std::uint64_t, most_ranks / 64> words_{};
};

/// The set that was proposed first for this key, which isn't 0; the same on all ranks.
/// Errors: unavailable once a world has asked most_agreements questions; peer_lost if another rank
///         wrote what isn't valid.
RankSet agree(const SharedSegment& segment, int rank, std::uint64_t key, const RankSet& proposal);

}  // namespace quadriga::message
