// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/memory_news.h: what the memory tells: who may do more by it, what it means for
// recovery, and who hears of it.
//
// Pure: no thread, device or clock; used by the scheduler's thread only.
//
// Invariants
//   1. A device that may do more by what is told is touched: both ends of a copy that has ended,
//      whoever uses content soon that came home, and all devices once a probe has ended.
//   2. The listener hears of a copy before its failure changes anything.
//   3. A device is set aside only if it is known to be gone. Which end of a failed copy between two
//      devices is gone isn't known: each gets a probe.
#pragma once

#include <functional>
#include <utility>

#include "memory/memory_listener.h"
#include "schedule/prefetch.h"
#include "schedule/recovery.h"
#include "schedule/state.h"

namespace quadriga {

class MemoryNews final : public MemoryListener {
 public:
  /// What is done about a device that is gone, and why it is.
  using Lose = std::function<void(DeviceState& device, const std::exception_ptr& cause)>;

  /// All must outlive it; none of it is used before the memory tells something.
  MemoryNews(ScheduleState& state, Recovery& recovery, Prefetch& prefetch, Lose lose)
      : state_(state), recovery_(recovery), prefetch_(prefetch), lose_(std::move(lose)) {}

  void copy_ended(StreamId stream, Reason reason, TileId tile, SpaceId from, SpaceId to,
                  std::size_t bytes, const Completion& completion) override;
  void evicted(TileId tile, SpaceId space) override;
  void departed(TileId tile, SpaceId space) override;
  void probed(SpaceId space, const Completion& completion) override;
  void freed(SpaceId space, std::byte* block, std::size_t bytes) override {
    state_.listener.freed(space, block, bytes);
  }

 private:
  void content_came_home(TileId tile, SpaceId from);
  void copy_failed(const EndedCopy& copy, const Completion& completion);
  void look_for_lost(const EndedCopy& copy, const std::exception_ptr& cause);

  ScheduleState& state_;
  Recovery& recovery_;
  Prefetch& prefetch_;
  const Lose lose_;
};

}  // namespace quadriga
