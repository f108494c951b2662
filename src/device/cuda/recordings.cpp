// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/recordings.cpp: launches are found by what they are called with, and recorded the
// second time.
#include "device/cuda/recordings.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>

#include "base/log.h"

namespace quadriga::cuda {
namespace {

bool same(const View& one, const View& other) noexcept {
  return one.data == other.data && one.rows == other.rows && one.cols == other.cols &&
         one.ld == other.ld && one.dtype == other.dtype;
}

}  // namespace

void Recordings::queue(std::span<const Meeting::Member> members, const Ways& ways) {
  const std::lock_guard lock(mutex_);
  Recording& found = find(members);
  if (found.state == State::known) {
    try {
      found.program = ways.record();
      found.state = State::recorded;
    } catch (const Error& error) {
      if (error.code() == Errc::device_lost) throw;
      found.state = State::refused;
      log(LogLevel::warning, fmt::format("not recorded, but queued each time: {}", error.what()));
    }
  }
  if (found.state == State::recorded) return found.program.replay(ways.stream);
  ways.queue();
  if (found.state == State::unknown) found.state = State::known;
}

bool Recordings::names(const Key& key, const Meeting::Member& member) const noexcept {
  return key.device == member.device && key.workspace == member.arguments.workspace.data() &&
         std::ranges::equal(key.operands, member.arguments.operands, same) &&
         std::ranges::equal(key.params, params_of(member));
}

/// The latest comes first.
Recordings::Recording& Recordings::find(std::span<const Meeting::Member> members) {
  constexpr std::size_t most = 16;
  const auto found = std::ranges::find_if(all_, [&](const Recording& each) {
    return std::ranges::equal(
        each.keys, members,
        [this](const Key& key, const Meeting::Member& member) { return names(key, member); });
  });
  if (found != all_.end()) {
    all_.splice(all_.begin(), all_, found);
    return all_.front();
  }
  if (all_.size() == most) all_.pop_back();
  Recording& made = all_.emplace_front();
  for (const Meeting::Member& each : members) {
    const auto params = params_of(each);
    made.keys.push_back({each.device,
                         {each.arguments.operands.begin(), each.arguments.operands.end()},
                         {params.begin(), params.end()},
                         each.arguments.workspace.data()});
  }
  return made;
}

}  // namespace quadriga::cuda
