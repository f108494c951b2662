// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/random_issuers.h: random instructions carried out by issuers, and what they did
// wrong.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "engine/issuers.h"
#include "polled_backend.h"

namespace quadriga {

inline const Kernel nothing = [](const Arguments&) {};

/// Notes each call; `before` comes ahead of a launch.
class NotingBackend final : public PolledBackend {
 public:
  explicit NotingBackend(std::size_t devices)
      : PolledBackend(Machine::parse("emulated:" + std::to_string(devices))) {}
  Event launch(StreamId stream, const Launch& launch) override {
    if (before) before(stream);
    const std::lock_guard lock(mutex_);  // Its end may be taken at once, and then looked for here.
    const Event event = PolledBackend::launch(stream, launch);
    launched_.push_back(event);
    calls_[stream].push_back(event);
    queued_.insert({event.stream, event.ticket});
    return event;
  }
  void wait(StreamId stream, Event event) override {
    const std::lock_guard lock(mutex_);
    calls_[stream].push_back(event);
    early_ += !queued_.contains({event.stream, event.ticket});
  }

  std::vector<Event> launched() {
    const std::lock_guard lock(mutex_);
    return launched_;
  }
  /// By stream: the events of operations, and those waited for.
  std::map<StreamId, std::vector<Event>> calls() {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  /// Waits for what wasn't queued.
  int early() {
    const std::lock_guard lock(mutex_);
    return early_;
  }
  std::function<void(StreamId)> before;

 private:
  std::mutex mutex_;  // Guards what follows.
  std::vector<Event> launched_;
  std::map<StreamId, std::vector<Event>> calls_;
  std::set<std::pair<StreamId, std::uint64_t>> queued_;
  int early_ = 0;
};

inline Event launch(Instructions& instructions, StreamId stream, bool meets = false) {
  Launch made;
  made.kernel = &nothing;
  made.meets = meets;
  return instructions.launch(stream, made);
}

/// Until so many operations have ended. Errors: what an issuer met.
inline void take_ends(Issuers& issuers, std::size_t count) {
  std::array<Completion, 16> ended;
  while (count > 0) count -= issuers.next(ended, never);
}

/// Nine streams of three devices, and waits for what was written lately. Empty if each stream kept
/// its order, waited for nothing that wasn't queued, and nothing passed a gang's launch.
inline std::string run_random_issuers(std::uint64_t seed) {
  constexpr StreamId streams = 9;
  constexpr std::size_t operations = 3000;
  constexpr std::size_t lately = 9;
  Random random(seed);
  NotingBackend backend(3);
  std::vector<DeviceId> devices;
  for (StreamId stream = 0; stream < streams; ++stream) {
    devices.push_back(static_cast<DeviceId>(stream % 3));
    backend.create_stream(devices.back(), StreamKind::compute);
  }
  // One device is behind the others, which come to waits for it early.
  backend.before = [](StreamId stream) {
    for (int i = 0; i < 20 && stream % 3 == 0; ++i) std::this_thread::yield();
  };
  Issuers issuers(backend, devices, true);
  Instructions instructions;
  std::map<StreamId, std::vector<Event>> expected;
  std::map<std::pair<StreamId, std::uint64_t>, const Instruction> all;
  const auto take = [&] {
    for (const Instruction& each : instructions.pending()) {
      const Event* const awaited = std::get_if<Event>(&each.operation);
      all.emplace(std::pair{each.stream, each.ticket}, each);
      expected[each.stream].push_back(awaited ? *awaited : Event{each.stream, each.ticket});
    }
    issuers.take(instructions);
  };
  std::vector<Event> made;
  std::size_t ended = 0;
  try {
    for (std::size_t i = 0; i < operations; ++i) {
      const auto stream = static_cast<StreamId>(random.below(streams));
      if (!made.empty() && random.below(2) == 0)
        instructions.wait(stream, made.rbegin()[random.below(std::min(made.size(), lately))]);
      made.push_back(launch(instructions, stream, random.below(8) == 0));
      if (random.below(3) == 0) take();
      std::array<Completion, 16> some;
      if (random.below(50) == 0) ended += issuers.next(some, 0);
    }
    take();
    take_ends(issuers, operations - ended);
  } catch (const Error& error) {
    return error.what();
  }
  if (backend.early() > 0) return "a stream waited for what wasn't queued";
  if (backend.calls() != expected) return "a stream lost its order";
  std::map<DeviceId, std::uint64_t> greatest;
  for (const Event& event : backend.launched()) {
    const Instruction& each = all.at({event.stream, event.ticket});
    std::uint64_t& before = greatest[devices[event.stream]];
    if (std::get<Launch>(each.operation).meets && each.number < before)
      return "an operation passed a launch that waits for its gang";
    before = std::max(before, each.number);
  }
  return {};
}

}  // namespace quadriga
