// SPDX-License-Identifier: BSD-3-Clause
// src/message/device_local.h: what a rank does by itself with memory of devices: copies, also from
// and to the host's, and reductions.
//
// Invariants
//   1. As device_moves.h's: nothing waits, and nothing touches memory once its move is destroyed.
//   2. Memory is one device's from its room's making to its end; what peers still map of it
//      afterwards is read by messages only that have been withdrawn.
#pragma once

#include <cstdint>
#include <memory>

#include "message/device_moves.h"
#include "message/pack/reduce.h"

namespace quadriga::message {

/// Copies the elements of one buffer to another, whose layouts may differ; at least one of them is
/// in a device's memory.
/// Errors: too_large if a device has no memory for packing.
std::shared_ptr<DeviceMove> move_between(const MessageBuffer& from, const MessageBuffer& to);

/// into = from op with, elements of one type side by side in memory of one device; `from` may be
/// `into`.
std::shared_ptr<DeviceMove> reduction_on_device(const MessageBuffer& into,
                                                const MessageBuffer& from,
                                                const MessageBuffer& with,
                                                ReduceOperation operation, ElementType type);

/// Whose memory something is: a port's device's, or the host's without a port.
struct Home {
  std::shared_ptr<DevicePort> port = {};
  DeviceId device = 0;
  bool operator==(const Home&) const = default;
};
inline Home home_of(const MessageBuffer& buffer) { return {buffer.port, buffer.device}; }

/// Memory for a while: of the host, or of a device, whose port keeps it for the next one.
class Room {
 public:
  Room() = default;
  /// Errors: too_large, with the bytes that are missing.
  Room(Home home, std::size_t bytes);
  ~Room();
  Room(Room&& other) noexcept;
  Room& operator=(Room&& other) noexcept;
  std::byte* data() const noexcept { return home_.port ? on_device_ : on_host_.get(); }
  /// Bytes from an offset on.
  MessageBuffer at(std::int64_t offset, std::size_t bytes) const;

 private:
  Home home_;
  std::size_t bytes_ = 0;
  std::unique_ptr<std::byte[]> on_host_;
  std::byte* on_device_ = nullptr;
};

}  // namespace quadriga::message
