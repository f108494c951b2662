// SPDX-License-Identifier: BSD-3-Clause
// src/memory/link_loads.h: bytes on their way over each link, and what a copy takes behind them.
//
// Pure. Copies of a pair of spaces go one after the other; those of other pairs share their common
// links with them in equal parts. So a copy waits on each link for all bytes of its own pair, and
// of others for at most as many bytes a pair as its own moves meanwhile.
#pragma once

#include <quadriga/machine.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace quadriga {

class LinkLoads {
 public:
  explicit LinkLoads(const Machine& machine);

  /// A copy was queued, or has ended.
  void add(SpaceId from, SpaceId to, std::size_t bytes);
  void remove(SpaceId from, SpaceId to, std::size_t bytes);
  /// On their way between the two.
  std::size_t bytes(SpaceId from, SpaceId to) const noexcept { return pair(from, to).bytes; }
  /// Until a copy that is queued now has arrived; infinite if no route joins the two.
  /// Cost:  those links of the route that may limit it, times the pairs that use them now.
  double seconds(SpaceId from, SpaceId to, std::size_t bytes) const noexcept;
  /// What a copy takes where all devices copy from and to the host meanwhile, whatever is on its
  /// way now: a link that many need, or that it crosses twice, counts so many times. The time alone
  /// where it shares none with them; infinite if no route joins the two.
  double crowded_seconds(SpaceId from, SpaceId to, std::size_t bytes) const noexcept {
    const Pair& own = pair(from, to);
    return own.latency + own.crowded_seconds_a_byte * static_cast<double>(bytes);
  }

 private:
  struct Crossing {
    std::uint32_t link = 0;
    std::uint32_t times = 1;  ///< A copy between two devices may cross the host's memory twice.
    double seconds_a_byte = 0;
  };
  struct Pair {
    double latency = 0;
    double crowded_seconds_a_byte = std::numeric_limits<double>::infinity();
    std::vector<Crossing> crossings;  ///< Of links that may limit it. None: no route.
    std::size_t bytes = 0;
  };
  /// Of a link: a pair that has bytes on their way over it.
  struct User {
    std::uint32_t pair = 0;
    std::uint32_t times = 1;
  };
  std::uint32_t number(SpaceId from, SpaceId to) const noexcept {
    return static_cast<std::uint32_t>(from * spaces_ + to);
  }
  const Pair& pair(SpaceId from, SpaceId to) const noexcept { return pairs_[number(from, to)]; }
  Pair& pair(SpaceId from, SpaceId to) noexcept { return pairs_[number(from, to)]; }

  std::size_t spaces_;
  std::vector<Pair> pairs_;
  std::vector<std::vector<User>> users_;  ///< By link.
};

}  // namespace quadriga
