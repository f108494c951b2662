// SPDX-License-Identifier: BSD-3-Clause
// src/engine/message_rooms.h: memory of devices that messages of tasks lie in while they are under
// way, beside the engine's arenas.
//
// Invariants
//   1. Rooms are the message ports' memory (PortMemory), never the arenas': however long a message
//      waits for its peer, no block of an arena waits with it. Who writes what is sent does wait.
//   2. What rooms of a device hold at once is bounded by may_take_room(), by the messages' bytes,
//      which the port rounds up; whoever gets none goes by way of the host. Nobody waits for a
//      room.
//   3. mutex_ guards the members after it. Memory is made and given back without it.
#pragma once

#include <quadriga/machine.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "graph/device_side.h"
#include "message/ports.h"

namespace quadriga {

/// Whether one more room of `bytes` may be taken where others hold `taken`: an eighth of the
/// device's memory in all, or a single message of half of it at most.
bool may_take_room(std::size_t taken, std::size_t bytes, std::size_t device_bytes) noexcept;

/// The device whose memory a message leaves from or comes to: where its data's newest content lies,
/// for a receive what it overwrites; else, `wants`, where tasks are placed that use it. Null: by
/// way of the host.
const OperandPlace* message_place(std::span<const OperandPlace> places, bool wants) noexcept;

class MessageRooms;

/// A room, as its engine and the port know it.
struct RoomMemory {
  DeviceId device = no_device;  ///< Of the engine.
  std::shared_ptr<message::DevicePort> port;
  DeviceId port_device = 0;
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
};

/// Given back at its end, by whoever lets go of it last.
class MessageRoom : public RoomMemory {
 public:
  MessageRoom(std::shared_ptr<MessageRooms> rooms, RoomMemory room) noexcept
      : RoomMemory(std::move(room)), rooms_(std::move(rooms)) {}
  ~MessageRoom();
  MessageRoom(const MessageRoom&) = delete;
  MessageRoom& operator=(const MessageRoom&) = delete;

 private:
  const std::shared_ptr<MessageRooms> rooms_;
};

class MessageRooms : public std::enable_shared_from_this<MessageRooms> {
 public:
  /// For the devices of an engine.
  explicit MessageRooms(Machine machine);
  /// Whether any device could have some.
  bool any() const noexcept { return any_; }
  /// Null if the device's are full, or it has none. Any thread.
  std::shared_ptr<MessageRoom> take(const OperandPlace& place, std::size_t bytes) noexcept;
  void gone(const MessageRoom& room) noexcept;

 private:
  struct Port {
    std::shared_ptr<message::DevicePort> port;
    DeviceId device = 0;
  };
  Port port_of(const OperandPlace& place);
  std::shared_ptr<MessageRoom> make(const OperandPlace& place, std::size_t bytes);

  const Machine machine_;
  bool any_ = false;
  std::mutex mutex_;
  std::shared_ptr<message::DevicePort> of_machine_;
  std::map<DeviceId, Port> of_process_;
  std::map<DeviceId, std::size_t> taken_;
};

}  // namespace quadriga
