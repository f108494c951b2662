// SPDX-License-Identifier: BSD-3-Clause
// src/message/device_moves.h: a message's way between memory of a device, the host's, and another
// device's: what is queued at a time, and what has arrived.
//
// Invariants
//   1. One thread at a time, that with the endpoint's lock. No call waits, but for the end of what
//      is queued by a destructor: that takes no longer than a copy of `most_seconds`.
//   2. Nothing touches a message's memory once its mover is destroyed.
//   3. Memory of a device beyond the message's own is held only while bytes pass through it.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <span>

#include "message/device_port.h"
#include "message/transfer.h"

namespace quadriga::message {

/// Elements in a device's memory, own or mapped, as operations of a port reach them.
struct DevicePlace {
  std::shared_ptr<DevicePort> port;
  DeviceId device = 0;  ///< Whose streams are used.
  SpaceId space = 1;    ///< Where it lies.
  Layout layout;
  std::byte* data = nullptr;
  std::shared_ptr<void> keep = {};  ///< The memory is there as long as this is.

  /// Where the bytes are if they lie side by side; else null.
  std::byte* flat() const noexcept;
};

/// What a buffer names, on the port's device.
DevicePlace place_on_device(const MessageBuffer& buffer);
/// How a port's machine counts the space of a device of another port: emulated devices of one
/// description are the same in both, a CUDA device's memory lies beside that of `own`.
SpaceId space_reached_by(const DevicePort& port, DeviceId device, DeviceId own);

/// Bytes on their way by what devices do, a part at a time.
class DeviceMove {
 public:
  DeviceMove() = default;
  virtual ~DeviceMove() = default;
  DeviceMove(const DeviceMove&) = delete;
  DeviceMove& operator=(const DeviceMove&) = delete;
  /// Queues what is next; whether anything ended or was queued. Errors: what ended the copies.
  virtual bool advance() = 0;
  virtual bool has_ended() = 0;
  /// Whether all operations are queued, on `own_lane`.
  virtual bool is_queued() const noexcept { return false; }
  static constexpr auto own_lane = PortLane::across;
};

/// Two blocks of the host's memory that a packed stream passes, each with one of the device's
/// where elements don't lie side by side.
class DeviceBlocks {
 public:
  /// Errors: too_large if there is no memory for them.
  DeviceBlocks(DevicePlace place, std::size_t bytes);
  ~DeviceBlocks();
  DeviceBlocks(const DeviceBlocks&) = delete;
  DeviceBlocks& operator=(const DeviceBlocks&) = delete;

 protected:
  struct Block {
    std::byte* host = nullptr;
    std::byte* device = nullptr;
    std::size_t begin = 0;  ///< Of the packed stream.
    std::size_t bytes = 0;  ///< 0: free.
    PortTicket ticket;
    bool has_ended = false;
  };
  void take(Block& block);
  const DevicePlace place_;
  const std::size_t bytes_;
  std::array<Block, 2> blocks_;
  std::size_t queued_ = 0;  ///< Bytes of the stream for which operations are queued.
};

/// Brings a place's packed stream to the host, ahead of who reads it.
class DeviceReader : public DeviceBlocks {
 public:
  DeviceReader(DevicePlace from, std::size_t bytes);
  /// What is there of the stream from `offset` on, which never decreases; empty: not yet.
  /// Errors: what ended the copies.
  std::span<const std::byte> at(std::size_t offset);

 private:
  void queue(Block& block);
};

/// Takes a packed stream from the host to a place.
class DeviceWriter : public DeviceBlocks {
 public:
  DeviceWriter(DevicePlace to, std::size_t bytes) : DeviceBlocks(std::move(to), bytes) {}
  /// Where the stream's next bytes go; empty: nowhere yet, or all are there.
  /// Errors: what ended the copies.
  std::span<std::byte> room();
  /// So many of them have been written there.
  void wrote(std::size_t bytes);
  /// False if there isn't room for all of it yet.
  bool write(std::span<const std::byte> from);
  /// Whether all has arrived. Errors: what ended the copies.
  bool has_ended();
  /// Whether all operations are queued, on `own_lane`.
  bool is_queued() const noexcept { return queued_ == bytes_; }
  static constexpr auto own_lane = PortLane::in;

 private:
  Block* current() noexcept;
  void free_ended();
  void queue(Block& block);
  std::size_t written_ = 0;
  std::size_t filled_ = 0;  ///< Of the block that is being written.
  int at_ = 0;
};

/// Writes all of a buffer's packed stream to the host's memory, or from there; returns once done.
void read_all(const MessageBuffer& from, std::span<std::byte> into);
void write_all(const MessageBuffer& to, std::span<const std::byte> from);

/// Copies from one place on devices to another, by the target's port, without the host's memory.
class DeviceCopier final : public DeviceMove {
 public:
  /// `bytes` of the packed streams, which agree.
  DeviceCopier(DevicePlace from, DevicePlace to, std::size_t bytes);
  ~DeviceCopier() override;
  bool advance() override;
  bool has_ended() override { return queued_ == bytes_ && under_way_.empty(); }
  bool is_queued() const noexcept override { return queued_ == bytes_; }

  /// What one operation takes at most, by the machine's rates.
  static constexpr double most_seconds = 0.02;

 private:
  PortTicket queue(std::size_t begin, std::size_t bytes);
  std::byte* block(std::size_t which);

  const DevicePlace from_, to_;
  const std::size_t bytes_;
  bool direct_ = false;     ///< Elements go from place to place by one kernel.
  bool in_blocks_ = false;  ///< Elements pass through blocks of the target's device.
  std::size_t segment_ = 0;
  std::size_t queued_ = 0;
  std::deque<PortTicket> under_way_;
  std::array<std::byte*, 2> blocks_{};
};

}  // namespace quadriga::message
