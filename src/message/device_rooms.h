// SPDX-License-Identifier: BSD-3-Clause
// src/message/device_rooms.h: free memory of a device that collectives had and may want again.
//
// Invariants
//   1. What is kept is `most_bytes` at most, or one room: those that were given back longest ago go
//      first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace quadriga::message {

class DeviceRooms {
 public:
  explicit DeviceRooms(std::size_t most_bytes = 0) noexcept : most_bytes_(most_bytes) {}

  /// The room of exactly so many bytes that was given back last; null: there is none.
  std::byte* take(std::size_t bytes) {
    const auto found = std::find_if(free_.rbegin(), free_.rend(),
                                    [&](const Room& each) { return each.bytes == bytes; });
    if (found == free_.rend()) return nullptr;
    std::byte* const memory = found->memory;
    free_.erase(std::next(found).base());
    bytes_ -= bytes;
    return memory;
  }
  /// Keeps a room; those that go for it.
  std::vector<std::byte*> give(std::byte* memory, std::size_t bytes) {
    free_.push_back({memory, bytes});
    bytes_ += bytes;
    std::vector<std::byte*> gone;
    while (bytes_ > most_bytes_ && free_.size() > 1) {
      gone.push_back(free_.front().memory);
      bytes_ -= free_.front().bytes;
      free_.erase(free_.begin());
    }
    return gone;
  }
  /// All of them go.
  std::vector<std::byte*> clear() {
    std::vector<std::byte*> gone;
    for (const Room& each : std::exchange(free_, {})) gone.push_back(each.memory);
    bytes_ = 0;
    return gone;
  }
  /// Of all that are kept.
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  struct Room {
    std::byte* memory;
    std::size_t bytes;
  };
  std::size_t most_bytes_;
  std::size_t bytes_ = 0;
  std::vector<Room> free_;  ///< In the order in which they were given back.
};

}  // namespace quadriga::message
