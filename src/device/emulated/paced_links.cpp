// SPDX-License-Identifier: BSD-3-Clause
// src/device/emulated/paced_links.cpp: copies in chunks of about half a millisecond, then sleep.
#include "device/emulated/paced_links.h"

#include <algorithm>
#include <thread>

#include "device/operation.h"

namespace quadriga {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double chunk_seconds = 5e-4;
constexpr std::size_t most_chunk_bytes = std::size_t{4} << 20;
constexpr auto longest_sleep = std::chrono::milliseconds(10);  // Before `stopping` is looked at.
constexpr auto late_wake_up = std::chrono::microseconds(50);

Clock::duration to_duration(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// Wakes up to `early` before the moment, since a sleeping thread is woken late by about as much.
void sleep_until(Clock::time_point moment, Clock::duration early,
                 const std::atomic<bool>& stopping) {
  moment -= early;
  for (auto now = Clock::now(); now < moment && !stopping.load(); now = Clock::now()) {
    std::this_thread::sleep_until(std::min(moment, now + longest_sleep));
  }
}

// Ends at the moment, or somewhat later: sleeps first, then gives way to other threads.
void wait_until(Clock::time_point moment, const std::atomic<bool>& stopping) {
  sleep_until(moment, late_wake_up, stopping);
  while (Clock::now() < moment && !stopping.load()) std::this_thread::yield();
}

// The next part of a copy of about `bytes`: whole runs, or a part of one run. Moves `done` on.
Copy next_chunk(const Copy& copy, std::size_t bytes, std::size_t& run, std::size_t& offset) {
  Copy part = copy;
  part.source += run * copy.source_pitch + offset;
  part.target += run * copy.target_pitch + offset;
  if (offset > 0 || copy.width_bytes > bytes) {
    part.width_bytes = std::min(bytes, copy.width_bytes - offset);
    part.height = 1;
    offset += part.width_bytes;
    run += offset == copy.width_bytes ? 1 : 0;
    offset %= copy.width_bytes;
  } else {
    part.height = std::min(bytes / copy.width_bytes, copy.height - run);
    run += part.height;
  }
  return part;
}

}  // namespace

PacedLinks::PacedLinks(const Machine& machine)
    : machine_(machine), routes_(machine), free_at_(machine.links.size()) {
  for (const Route& route : machine.routes) {
    Way& way = ways_.emplace_back();
    double latency = 0;
    for (const int link : route.links) {
      latency += machine.links[link].latency_seconds;
      if (std::ranges::count(way.links, link) > 0) continue;
      const auto crossings = static_cast<double>(std::ranges::count(route.links, link));
      way.links.push_back(link);
      way.seconds_a_byte.push_back(crossings / machine.links[link].bytes_per_second);
      way.slowest_seconds_a_byte = std::max(way.slowest_seconds_a_byte, way.seconds_a_byte.back());
    }
    way.latency = to_duration(latency);
  }
}

Clock::time_point PacedLinks::take_turn(const Way& way, std::size_t bytes,
                                        Clock::time_point begin) {
  const std::lock_guard lock(mutex_);
  Clock::time_point done = begin;
  for (std::size_t i = 0; i < way.links.size(); ++i) {
    Clock::time_point& free_at = free_at_[way.links[i]];
    free_at =
        std::max(free_at, begin) + to_duration(static_cast<double>(bytes) * way.seconds_a_byte[i]);
    done = std::max(done, free_at);
  }
  return done;
}

void PacedLinks::copy(const Copy& copy, const std::atomic<bool>& stopping) {
  const auto route = static_cast<std::size_t>(routes_.find(copy.from, copy.to, copy.node));
  const Way& way = ways_[route];
  const Clock::time_point begin = Clock::now() + way.latency;
  wait_until(begin, stopping);
  if (bytes_of(copy) == 0) return;
  // What short runs take beyond the links' time is theirs alone: others may cross meanwhile.
  const double seconds_a_byte = 1 / limit_by_runs(machine_, machine_.routes[route], copy);
  const double slowest = std::max(way.slowest_seconds_a_byte, seconds_a_byte);
  const auto chunk_bytes =
      static_cast<std::size_t>(std::clamp(chunk_seconds / slowest, 1.0, 1.0 * most_chunk_bytes));
  Copy whole = copy;
  whole.pieces.reset();
  std::size_t offset = 0;
  std::size_t moved = 0;
  Clock::time_point done = begin;
  for (std::size_t run = 0; run < copy.height && !stopping.load();) {
    // Chunks but the last may wake up late: the time isn't lost, the next one is done sooner.
    sleep_until(done, Clock::duration(), stopping);
    const Copy part = next_chunk(whole, chunk_bytes, run, offset);
    moved += bytes_of(part);
    done = std::max(take_turn(way, bytes_of(part), begin),
                    begin + to_duration(static_cast<double>(moved) * seconds_a_byte));
    if (!copy.pieces) move_bytes(part);
  }
  if (copy.pieces && !stopping.load()) move_bytes(copy);
  wait_until(done, stopping);
}

}  // namespace quadriga
