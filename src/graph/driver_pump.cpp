// SPDX-License-Identifier: BSD-3-Clause
// src/graph/driver_pump.cpp: which device issues next, what, and on which stream.
#include "graph/driver.h"

#include <algorithm>
#include <utility>

namespace quadriga {
namespace {

/// What is issued ahead beyond two tasks a stream.
constexpr double ahead_seconds = 2e-3;

}  // namespace

bool Driver::wants_more(const DeviceState& device) const {
  const int streams = static_cast<int>(device.streams.size());
  return device.issued < 2 * streams ||
         (device.issued_seconds < ahead_seconds && device.issued < 32 * streams);
}

/// Devices issue by turns, from one call to the next as well, so that of those which need the same
/// tiles each fetches some. A few tasks each, under a real clock: issuing takes time, in which
/// nobody sees what has ended.
bool Driver::pump() {
  constexpr int rounds_at_once = 4;
  bool happened = false;
  // An idle device looks around each time: others may have got what it can steal.
  for (DeviceState& device : devices_)
    if (device.awaits_source || device.lacks_buffer || device.issued == 0) touch(device);
  more_to_issue_ = true;
  for (int round = 0; more_to_issue_ && (virtual_ || round < rounds_at_once); ++round) {
    more_to_issue_ = false;
    const std::size_t first = next_turn_;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      const std::size_t place = (first + i) % devices_.size();
      if (devices_[place].lost || !issue_in_turn(devices_[place])) continue;
      more_to_issue_ = true;
      next_turn_ = (place + 1) % devices_.size();
    }
    happened |= more_to_issue_;
  }
  for (DeviceState& device : devices_)
    if (std::exchange(device.looked, false) && !device.lost) happened |= fill_up(device);
  return happened;
}

/// One task of a device that something happened to since it found none to issue.
bool Driver::issue_in_turn(DeviceState& device) {
  if (std::exchange(device.touched, false)) device.open = true;
  if (!device.open) return false;
  device.looked = true;
  device.awaits_source = false;
  device.open = wants_more(device) && issue_next(device);
  return device.open;
}

bool Driver::fill_up(DeviceState& device) {
  bool happened = false;
  while (wants_more(device) && !device.head && plan_.on(device.id).ready.empty() && steal(device)) {
    if (!issue_next(device)) break;
    happened = true;
  }
  if (device.space != host_space) {
    prefetch(device);
    memory_->clean_ahead(device.space);
  }
  return happened;
}

bool Driver::issue_next(DeviceState& device) {
  const PlanSet& ready = plan_.on(device.id).ready;
  if (device.head) {
    PlannedTask& head = *device.head;
    device.head = nullptr;
    const Outcome outcome = issue(device, head);
    if (outcome != Outcome::no_source) return outcome == Outcome::done;
    device.awaits_source = true;
  }
  // Tasks whose content is still to come home from elsewhere let others pass, and those that would
  // stand behind enough of their like.
  constexpr int most = 16;
  int looked = 0;
  const bool is_full = has_enough(device.streams.front());
  for (auto next = ready.begin(); next != ready.end() && looked < most; ++looked) {
    PlannedTask& planned = **next++;
    if (planned.fills && is_full) continue;
    const Outcome outcome = issue(device, planned);
    if (outcome == Outcome::no_source) {
      device.awaits_source = true;
      continue;
    }
    return outcome == Outcome::done;
  }
  return false;
}

/// All that the task being issued needs is there, or made by an earlier task of the stream.
bool Driver::can_start(const DeviceState& device, const ComputeStream& stream) const {
  return std::ranges::all_of(needs_, [&](const Need& need) {
    const Event made = memory_->ready(need.tile, device.space);
    return !made || made.stream == stream.id ||
           (memory_->confirmed(need.tile, device.space) &&
            memory_->directory().arrived(need.tile, device.space));
  });
}

/// Of kernels that run one after the other.
bool Driver::has_enough(const ComputeStream& stream) {
  return stream.issued.size() >= 2 && stream.issued_seconds >= ahead_seconds;
}

/// For tasks that may wait the last. For one that fills the device and can start the first: such
/// kernels run one after the other, each with all of the device's caches. For short tasks that of
/// one which they must wait for and nothing was queued behind: they need no event then. Else the
/// one with least in it, the first only if the others have more.
Driver::ComputeStream& Driver::stream_for(DeviceState& device, const PlannedTask& planned) {
  constexpr double short_seconds = 20e-6;
  if (planned.waits) return device.streams.back();
  if (planned.fills && can_start(device, device.streams.front())) return device.streams.front();
  for (const Need& need : needs_) {
    if (planned.seconds > short_seconds) break;
    const Event before = memory_->ready(need.tile, device.space);
    if (!before || before.stream >= compute_of_stream_.size()) continue;
    const auto [owner, stream] = compute_of_stream_[before.stream];
    if (owner == &device && !stream->issued.empty() && stream->issued.back().first == before.ticket)
      return *stream;
  }
  // Variants that wait are called one by one: they shall hold up one stream, and nothing on others.
  const bool apart = device.streams.back().waiting > 0 && device.streams.size() > 1;
  return *std::min_element(device.streams.rbegin() + apart, device.streams.rend(),
                           [](const ComputeStream& a, const ComputeStream& b) {
                             return a.issued.size() < b.issued.size();
                           });
}

}  // namespace quadriga
