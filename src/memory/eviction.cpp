// SPDX-License-Identifier: BSD-3-Clause
// src/memory/eviction.cpp: the rules, and the search for one tile or a stretch of them.
#include "memory/eviction.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "memory/arena.h"

namespace quadriga {
namespace {

constexpr std::uint8_t ease(const Candidate& candidate) noexcept {
  if (!candidate.dirty) return 2;
  return candidate.final ? 1 : 0;
}

/// Candidates that leave together: a run of the address-ordered span.
struct Stretch {
  std::size_t first = 0;
  std::size_t count = 0;  ///< 0: none found.
  VictimRank least;       ///< Of its candidates.

  bool better_than(const Stretch& other) const noexcept {
    if (count == 0 || other.count == 0) return count != 0;
    return std::tie(least, other.count) > std::tie(other.least, count);
  }
};

std::size_t end_of(const Candidate& candidate) noexcept {
  return candidate.offset + candidate.bytes;
}

/// The shortest stretch that ends with candidates[last] and has room, if it may be better than
/// `best`.
Stretch stretch_to(const EvictionRule& rule, const Arena& arena,
                   std::span<const Candidate> candidates, std::size_t last, std::size_t wanted,
                   const Stretch& best) {
  Stretch found{.first = last, .count = 1, .least = rule.rank(candidates[last])};
  std::size_t bytes = candidates[last].bytes + arena.room(candidates[last].offset).after;
  while (best.count == 0 || found.least >= best.least) {
    const std::size_t before = arena.room(candidates[found.first].offset).before;
    if (bytes + before >= wanted) return found;
    if (found.first == 0) break;
    const Candidate& left = candidates[found.first - 1];
    if (end_of(left) + before != candidates[found.first].offset) break;  // a block that must stay
    bytes += before + left.bytes;
    found.least = std::min(found.least, rule.rank(left));
    --found.first;
    ++found.count;
  }
  return {};
}

std::size_t choose_stretch(const EvictionRule& rule, const Arena& arena,
                           std::span<Candidate> candidates, std::size_t wanted,
                           std::span<TileId> out) {
  if (!std::ranges::is_sorted(candidates, {}, &Candidate::offset))
    std::ranges::sort(candidates, {}, &Candidate::offset);
  Stretch best;
  for (std::size_t last = 0; last < candidates.size(); ++last) {
    const Stretch found = stretch_to(rule, arena, candidates, last, wanted, best);
    if (found.count <= out.size() && found.better_than(best)) best = found;
  }
  for (std::size_t index = 0; index < best.count; ++index)
    out[index] = candidates[best.first + index].tile;
  return best.count;
}

}  // namespace

VictimRank FarthestUse::rank(const Candidate& candidate) const noexcept {
  std::uint64_t charge = 0;
  if (candidate.dirty)
    charge = static_cast<std::uint64_t>(std::min(1e15, rate_ * candidate.write_back_seconds));
  const bool planned = candidate.next_use != no_next_use;
  VictimRank rank{
      .distance = candidate.next_use, .age = ~candidate.last_use, .ease = ease(candidate)};
  std::uint64_t& charged = planned ? rank.distance : rank.age;
  charged -= std::min(charged, charge);
  return rank;
}

VictimRank Lru::rank(const Candidate& candidate) const noexcept {
  return {.distance = 0, .age = ~candidate.last_use, .ease = ease(candidate)};
}

VictimRank ReadFirst::rank(const Candidate& candidate) const noexcept {
  return {.distance = candidate.dirty ? 0U : 1U, .age = ~candidate.last_use};
}

void BestVictim::look(const Candidate& candidate) noexcept {
  const VictimRank rank = rule_.rank(candidate);
  const bool is_first = best_.tile == no_tile;
  const auto order = is_first ? std::strong_ordering::greater : rank <=> rank_;
  // What is too small wraps around.
  const auto misfit = [this](const Candidate& each) { return each.bytes - wanted_; };
  if (order < 0 || (order == 0 && std::pair(misfit(candidate), candidate.tile) >=
                                      std::pair(misfit(best_), best_.tile)))
    return;
  best_ = candidate;
  rank_ = rank;
}

bool makes_room(const Arena& arena, const Candidate& candidate, std::size_t wanted) {
  const Arena::Room room = arena.room(candidate.offset);
  return room.before + room.bytes + room.after >= wanted;
}

std::size_t choose_victims(const EvictionRule& rule, const Arena& arena,
                           std::span<Candidate> candidates, std::size_t bytes,
                           std::span<TileId> out) {
  if (candidates.empty() || out.empty()) return 0;
  const std::size_t wanted = arena.rounded(bytes);
  BestVictim best(rule, wanted);
  for (const Candidate& candidate : candidates) best.look(candidate);
  if (!makes_room(arena, best.candidate(), wanted))
    return choose_stretch(rule, arena, candidates, wanted, out);
  out[0] = best.candidate().tile;
  return 1;
}

std::size_t choose_anywhere(const EvictionRule& rule, std::span<Candidate> candidates,
                            std::size_t bytes) {
  best_victims(rule, candidates, candidates.size());
  std::size_t count = 0, sum = 0;
  while (count < candidates.size() && sum < bytes) sum += candidates[count++].bytes;
  return sum < bytes ? 0 : count;
}

std::span<Candidate> best_victims(const EvictionRule& rule, std::span<Candidate> candidates,
                                  std::size_t count) {
  count = std::min(count, candidates.size());
  const auto sooner = [&rule](const Candidate& a, const Candidate& b) {
    const auto order = rule.rank(a) <=> rule.rank(b);
    return order == 0 ? a.tile < b.tile : order > 0;
  };
  const auto end = candidates.begin() + static_cast<std::ptrdiff_t>(count);
  if (count < candidates.size()) std::ranges::nth_element(candidates, end, sooner);
  std::ranges::sort(candidates.first(count), sooner);
  return candidates.first(count);
}

}  // namespace quadriga
