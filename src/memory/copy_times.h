// SPDX-License-Identifier: BSD-3-Clause
// src/memory/copy_times.h: what copies between two spaces take, looked up once.
#pragma once

#include <quadriga/machine.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace quadriga {

/// Tiles below one another come with one copy if that makes it so many times as quick: the first
/// one arrives later than alone, and on the device they still have to be told apart.
inline constexpr double least_gain_of_columns = 1.5;

/// Machine::copy_seconds() for each pair of spaces. Cost of an answer: constant, however many
/// routes there are.
class CopyTimes {
 public:
  explicit CopyTimes(const Machine& machine) : spaces_(static_cast<std::size_t>(machine.spaces())) {
    for (std::size_t from = 0; from < spaces_; ++from)
      for (std::size_t to = 0; to < spaces_; ++to) routes_.push_back(route(machine, from, to));
  }
  /// Infinite if no route joins them.
  double seconds(SpaceId from, SpaceId to, double bytes) const noexcept {
    const Route& route = routes_[from * spaces_ + to];
    return route.latency + bytes * route.seconds_a_byte;
  }
  bool joined(SpaceId from, SpaceId to) const noexcept {
    return routes_[from * spaces_ + to].latency < infinity;
  }

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  struct Route {
    double latency = infinity;
    double seconds_a_byte = 0;
  };
  static Route route(const Machine& machine, std::size_t from, std::size_t to) {
    const auto* const found = machine.route(static_cast<SpaceId>(from), static_cast<SpaceId>(to));
    if (!found) return {};
    Route route{.latency = 0};
    for (const int link : found->links) {
      const auto crossings = static_cast<double>(std::ranges::count(found->links, link));
      route.latency += machine.links[link].latency_seconds;
      route.seconds_a_byte =
          std::max(route.seconds_a_byte, crossings / machine.links[link].bytes_per_second);
    }
    return route;
  }

  std::size_t spaces_;
  std::vector<Route> routes_;
};

}  // namespace quadriga
