// SPDX-License-Identifier: BSD-3-Clause
// src/graph/gang.h: tasks that start together, each on a device of its own: all of them or none.
#pragma once

#include <atomic>
#include <cstdint>

namespace quadriga {

/// Kept by its tasks; who submitted them may keep it, too.
struct Gang {
  explicit Gang(std::uint32_t tasks) : size(tasks) {}
  explicit Gang(std::uint32_t tasks, std::uint64_t number) : id(number), size(tasks) {}

  const std::uint64_t id = next_id();  ///< From 1.
  const std::uint32_t size;            ///< How many tasks.
  /// One of them failed, can't run, or its device was lost. A body that waits for the others looks
  /// at it, and gives up: they may never come.
  std::atomic<bool> broken{false};

  /// Asked as each of its tasks is about to run: whether all are taken back instead. What the
  /// first one wants decides for all of them. Any thread.
  bool revokes(bool wanted) noexcept {
    const Fate mine = wanted ? Fate::revoked : Fate::runs;
    Fate fate = Fate::open;
    return (fate_.compare_exchange_strong(fate, mine) ? mine : fate) == Fate::revoked;
  }

 private:
  enum class Fate : std::uint8_t { open, runs, revoked };
  static std::uint64_t next_id() noexcept {
    static std::atomic<std::uint64_t> made{0};
    return made.fetch_add(1, std::memory_order_relaxed) + 1;
  }

  std::atomic<Fate> fate_{Fate::open};
};

}  // namespace quadriga
