// SPDX-License-Identifier: BSD-3-Clause
// src/device/emulated/paced_links.h: copies in host memory, slowed down to the rates of a machine's
// links.
//
// Invariants:
// 1. `mutex_` guards `free_at_` and is held neither while bytes move nor while a thread sleeps.
// 2. Until any moment t a link has carried no more than its rate times the time that copies were
//    crossing it: a chunk's share of the link's time is taken before it counts as done, and begins
//    no earlier than its copy.
#pragma once

#include <quadriga/machine.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <vector>

#include "device/backend.h"
#include "device/route_table.h"

namespace quadriga {

/// The links of a machine by the real clock. Any number of threads copy at once.
class PacedLinks {
 public:
  /// The machine must outlive this.
  explicit PacedLinks(const Machine& machine);

  /// Moves the bytes in chunks, never faster than the route's links allow, for runs as short as
  /// its own; copies that cross a link at once take turns. Returns early, the rest not moved, once
  /// `stopping` is set.
  void copy(const Copy& copy, const std::atomic<bool>& stopping);

 private:
  using Clock = std::chrono::steady_clock;

  struct Way {
    std::vector<double> seconds_a_byte;  // Of each of its links, as often as it crosses it.
    std::vector<int> links;              // Each once.
    double slowest_seconds_a_byte = 0;
    Clock::duration latency{};
  };
  Clock::time_point take_turn(const Way& way, std::size_t bytes, Clock::time_point begin);

  const Machine& machine_;
  RouteTable routes_;
  std::vector<Way> ways_;  // Of each route.
  std::mutex mutex_;
  std::vector<Clock::time_point> free_at_;  // Of each link.
};

}  // namespace quadriga
