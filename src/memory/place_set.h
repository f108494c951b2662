// SPDX-License-Identifier: BSD-3-Clause
// src/memory/place_set.h: a set of places in a list, of which the next one is found at once.
//
// Invariants
//   1. Bit i of a level says whether word i of the level below has any bit; the last level is one
//      word.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace quadriga {

/// Cost of each call: by the logarithm to the base 64 of the greatest place so far.
class PlaceSet {
 public:
  static constexpr std::size_t none = SIZE_MAX;

  void insert(std::size_t place) {
    while (place >= size()) grow();
    for (Level& level : levels_) {
      level[place / bits] |= bit(place);
      place /= bits;
    }
  }
  void erase(std::size_t place) noexcept {
    if (place >= size()) return;
    for (Level& level : levels_) {
      level[place / bits] &= ~bit(place);
      if (level[place / bits] != 0) return;
      place /= bits;
    }
  }
  bool contains(std::size_t place) const noexcept {
    return place < size() && (levels_[0][place / bits] & bit(place)) != 0;
  }
  /// The first place from this one on; none if there isn't any.
  std::size_t next(std::size_t place) const noexcept {
    for (std::size_t at = 0; at < levels_.size(); ++at, place = place / bits + 1) {
      if (place / bits >= levels_[at].size()) return none;
      const std::uint64_t rest = levels_[at][place / bits] & (~std::uint64_t{0} << place % bits);
      if (rest != 0) return descend(at, place / bits, rest);
    }
    return none;
  }
  void clear() noexcept { levels_.clear(); }

 private:
  using Level = std::vector<std::uint64_t>;
  static constexpr std::size_t bits = 64;
  static constexpr std::uint64_t bit(std::size_t place) noexcept {
    return std::uint64_t{1} << place % bits;
  }

  std::size_t size() const noexcept { return levels_.empty() ? 0 : levels_[0].size() * bits; }
  /// One level more, and words for all places below it.
  void grow() {
    const bool is_first = levels_.empty();
    const std::uint64_t any = !is_first && levels_.back()[0] != 0 ? 1 : 0;
    levels_.push_back({any});
    std::size_t words = 1;
    for (std::size_t at = levels_.size(); at-- > 0; words *= bits) levels_[at].resize(words);
  }
  /// From the first of these bits of a level's word down to its place.
  std::size_t descend(std::size_t at, std::size_t word, std::uint64_t rest) const noexcept {
    for (;; --at) {
      word = word * bits + static_cast<std::size_t>(std::countr_zero(rest));
      if (at == 0) return word;
      rest = levels_[at - 1][word];
    }
  }

  std::vector<Level> levels_;  ///< That of places first.
};

}  // namespace quadriga
