// SPDX-License-Identifier: BSD-3-Clause
// src/memory/copy_times.h: what copies between two spaces take, looked up once.
#pragma once

#include <quadriga/machine.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "device/route_table.h"

namespace quadriga {

/// Tiles below one another come with one copy if that makes it so many times as quick: the first
/// one arrives later than alone, and on the device they still have to be told apart.
inline constexpr double least_gain_of_columns = 1.5;

/// Machine::copy_seconds() for each pair of spaces and, where one is the host's, for each node that
/// has routes of its own. Cost of an answer: constant, however many routes there are.
class CopyTimes {
 public:
  explicit CopyTimes(const Machine& machine) : table_(machine) {
    for (const int index : table_.all())
      times_.push_back(index == RouteTable::none ? Time() : time_of(machine, index));
  }
  /// Infinite if no route joins them. `node`: where the end on the host lies.
  double seconds(SpaceId from, SpaceId to, double bytes, int node = any_node) const noexcept {
    const Time& time = times_[table_.place(from, to, node)];
    return time.latency + bytes * time.seconds_a_byte;
  }
  bool joined(SpaceId from, SpaceId to) const noexcept {
    return times_[table_.place(from, to, any_node)].latency < infinity;
  }

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  struct Time {
    double latency = infinity;
    double seconds_a_byte = 0;
  };
  static Time time_of(const Machine& machine, int index) {
    const Route& route = machine.routes[static_cast<std::size_t>(index)];
    Time time{.latency = 0};
    for (const int link : route.links) {
      const auto crossings = static_cast<double>(std::ranges::count(route.links, link));
      time.latency += machine.links[link].latency_seconds;
      time.seconds_a_byte =
          std::max(time.seconds_a_byte, crossings / machine.links[link].bytes_per_second);
    }
    return time;
  }

  RouteTable table_;
  std::vector<Time> times_;
};

}  // namespace quadriga
