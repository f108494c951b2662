// SPDX-License-Identifier: BSD-3-Clause
// src/memory/eviction.h: which tiles leave a device when room is needed. Pure.
#pragma once

#include "memory/directory.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>

namespace quadriga {

class Arena;

inline constexpr std::uint64_t no_next_use = UINT64_MAX;

/// A replica that may leave: neither pinned nor in flight.
struct Candidate {
  TileId tile = no_tile;
  std::size_t offset = 0;                ///< Of its block in the arena.
  std::size_t bytes = 0;                 ///< Of its block: rounded.
  std::uint64_t next_use = no_next_use;  ///< Position in the plan of its next use on this device.
  std::uint64_t last_use = 0;            ///< Position of its last one.
  bool dirty = false;
  bool final = false;             ///< No later task writes it: it goes home anyway.
  double write_back_seconds = 0;  ///< Predicted; of a dirty one.
};

/// How well a candidate may leave: the greatest goes first. Compared in the order of the
/// members.
struct VictimRank {
  std::uint64_t distance = 0;  ///< Of the next use: later is greater.
  std::uint64_t age = 0;       ///< Since the last use: longer is greater.
  std::uint8_t ease = 0;       ///< Clean before final before dirty.
  auto operator<=>(const VictimRank&) const = default;
};

/// What ranks don't exceed, but for their ease.
struct VictimBound {
  std::uint64_t distance = 0;
  std::uint64_t age = 0;
  auto operator<=>(const VictimBound&) const = default;
};

/// Says which of two candidates should rather leave.
class EvictionRule {
 public:
  virtual ~EvictionRule() = default;
  virtual VictimRank rank(const Candidate& candidate) const noexcept = 0;
  /// What the ranks of a tile don't exceed, whatever else is known of it. The nearer or the later
  /// the uses, the less it is. By default nothing is said: each candidate is ranked.
  virtual VictimBound bound(std::uint64_t /*next_use*/, std::uint64_t /*last_use*/) const noexcept {
    return {.distance = UINT64_MAX, .age = UINT64_MAX};
  }
};

/// The tile whose next use is farthest, else the least recently used; clean before dirty among
/// equals.
///
/// A dirty tile counts as if it were used (or had been used) by so many positions nearer as the
/// device passes while it is written back: a dirty tile that no planned task needs still leaves
/// before a clean one that some task does.
/// Source:  Belady, A study of replacement algorithms, IBM Systems Journal 5(2), 1966.
class FarthestUse final : public EvictionRule {
 public:
  /// How many positions of its plan a device passes in a second; 0: dirty tiles are charged
  /// nothing.
  explicit FarthestUse(double positions_per_second = 0) noexcept : rate_(positions_per_second) {}
  void set_positions_per_second(double rate) noexcept { rate_ = rate; }
  VictimRank rank(const Candidate& candidate) const noexcept override;
  VictimBound bound(std::uint64_t next_use, std::uint64_t last_use) const noexcept override {
    return {.distance = next_use, .age = ~last_use};
  }

 private:
  double rate_;
};

/// The least recently used, whatever is planned; clean before dirty among equals.
class Lru final : public EvictionRule {
 public:
  VictimRank rank(const Candidate& candidate) const noexcept override;
  VictimBound bound(std::uint64_t /*next_use*/, std::uint64_t last_use) const noexcept override {
    return {.distance = 0, .age = ~last_use};
  }
};

/// Two lists, each by the last use: what is only read leaves first, then what must be written back.
///
/// Source:  Lima, Gautier, Maillard, Danjean, SBAC-PAD 2012, section III.C.
class ReadFirst final : public EvictionRule {
 public:
  VictimRank rank(const Candidate& candidate) const noexcept override;
  VictimBound bound(std::uint64_t /*next_use*/, std::uint64_t last_use) const noexcept override {
    return {.distance = 1, .age = ~last_use};
  }
};

/// Compares candidates that come one by one: who leaves best, among equals the smallest that is
/// large enough by itself, then the first.
class BestVictim {
 public:
  BestVictim(const EvictionRule& rule, std::size_t wanted) noexcept
      : rule_(rule), wanted_(wanted) {}
  void look(const Candidate& candidate) noexcept;
  /// None: its tile is no_tile.
  const Candidate& candidate() const noexcept { return best_; }
  /// Whose bound is less can't be better.
  VictimBound bound() const noexcept { return {.distance = rank_.distance, .age = rank_.age}; }

 private:
  const EvictionRule& rule_;
  std::size_t wanted_;
  Candidate best_;
  VictimRank rank_;
};

/// Whether what leaves makes room enough where it lies, with the free bytes around it.
bool makes_room(const Arena& arena, const Candidate& candidate, std::size_t wanted);

/// Chooses the tiles whose leaving makes room for one block of `bytes`, as few and as little needed
/// as the rule finds.
///
/// If the tile to be spared best makes room enough where it lies (with the free bytes around it),
/// it is the victim. Otherwise all stretches of the arena that consist of candidates and free
/// blocks alone are compared by the candidate in them that can be spared least, then by their
/// number.
///
/// Async:   decides only; the caller writes back, drops and deallocates, then allocates again.
/// Returns: how many were written to `out`; 0 if no stretch of at most `out.size()` tiles is large
///          enough: drain the device, or wait for pins to go.
/// Cost:    one pass over the candidates; where stretches are compared, as many steps more as each
///          has blocks, and sorting by offset unless they come so. Allocates nothing.
std::size_t choose_victims(const EvictionRule& rule, const Arena& arena,
                           std::span<Candidate> candidates, std::size_t bytes,
                           std::span<TileId> out);

/// Moves the candidates that can be spared best to the front, best first: as few of them as have
/// `bytes` together, wherever they lie. Returns how many; 0 if all together have less. Cost: sorts.
/// Allocates nothing.
std::size_t choose_anywhere(const EvictionRule& rule, std::span<Candidate> candidates,
                            std::size_t bytes);

/// Moves the `count` candidates that can be spared best to the front, best first: what to write
/// back ahead of need. Cost: linear, beside sorting `count`. Allocates nothing.
std::span<Candidate> best_victims(const EvictionRule& rule, std::span<Candidate> candidates,
                                  std::size_t count);

}  // namespace quadriga
