// SPDX-License-Identifier: BSD-3-Clause
// src/engine/message_rooms.cpp: who gets memory for a message, and of which port.
#include "engine/message_rooms.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "device/kinds.h"

namespace quadriga {
namespace {

bool has_rooms(const Device& device) noexcept {
  return device.space != host_space && properties_of(device.kind).messages != MessageMemory::none;
}

/// The file to which an engine spills is the last device, and isn't to be opened twice.
Machine without_spill(Machine machine) {
  while (!machine.devices.empty() && properties_of(machine.devices.back().kind).only_stores) {
    const SpaceId space = machine.devices.back().space;
    std::erase_if(machine.routes,
                  [&](const Route& each) { return each.from == space || each.to == space; });
    machine.devices.pop_back();
  }
  return machine;
}

}  // namespace

bool may_take_room(std::size_t taken, std::size_t bytes, std::size_t device_bytes) noexcept {
  constexpr std::size_t part = 8;
  if (taken == 0) return bytes <= device_bytes / 2;
  return taken <= device_bytes / part && bytes <= device_bytes / part - taken;
}

const OperandPlace* message_place(std::span<const OperandPlace> places, bool wants) noexcept {
  const auto lies = std::ranges::find_if(places, [](const auto& each) { return each.memory; });
  if (lies != places.end()) return &*lies;
  const auto wanted = std::ranges::find_if(places, &OperandPlace::is_wanted);
  return wants && wanted != places.end() ? &*wanted : nullptr;
}

MessageRoom::~MessageRoom() {
  port->memory().give_room(port_device, memory, bytes);
  rooms_->gone(*this);
}

// A port opens all devices of its machine: those of a mixture are left to the host.
MessageRooms::MessageRooms(Machine machine) : machine_(without_spill(std::move(machine))) {
  const auto is_host = [](const Device& each) { return each.kind == DeviceKind::cpu; };
  any_ = std::ranges::any_of(machine_.devices, has_rooms) &&
         std::ranges::all_of(machine_.devices,
                             [&](const Device& each) { return is_host(each) || has_rooms(each); });
  for (const Device& each : machine_.devices)
    for (const Device& other : machine_.devices)
      any_ &= is_host(each) || is_host(other) || each.kind == other.kind;
}

/// Devices of a machine's port have the engine's numbers; of the process's ports the one that has
/// the content is known.
MessageRooms::Port MessageRooms::port_of(const OperandPlace& place) {
  const DeviceKind kind = machine_.devices[place.device].kind;
  if (properties_of(kind).messages == MessageMemory::of_machine) {
    if (!of_machine_) of_machine_ = message::ports::open(machine_);
    return {of_machine_, place.device};
  }
  Port& known = of_process_[place.device];
  if (!known.port && place.memory) known = {message::ports::cuda_at(place.memory), 0};
  return known;
}

std::shared_ptr<MessageRoom> MessageRooms::make(const OperandPlace& place, std::size_t bytes) {
  Port port;
  {
    const std::lock_guard lock(mutex_);
    std::size_t& taken = taken_[place.device];
    if (!may_take_room(taken, bytes, machine_.devices[place.device].memory_bytes)) return nullptr;
    port = port_of(place);
    if (!port.port) return nullptr;
    taken += bytes;
  }
  std::byte* memory = nullptr;
  try {
    memory = port.port->memory().take_room(port.device, bytes);
    if (memory)
      return std::make_shared<MessageRoom>(
          shared_from_this(), RoomMemory{place.device, port.port, port.device, memory, bytes});
  } catch (const std::exception&) {
    // As one that is full.
  }
  if (memory) port.port->memory().give_room(port.device, memory, bytes);
  const std::lock_guard lock(mutex_);
  taken_[place.device] -= bytes;
  return nullptr;
}

std::shared_ptr<MessageRoom> MessageRooms::take(const OperandPlace& place,
                                                std::size_t bytes) noexcept {
  try {
    return any_ && bytes > 0 ? make(place, bytes) : nullptr;
  } catch (const std::exception&) {
    return nullptr;  // no port
  }
}

void MessageRooms::gone(const MessageRoom& room) noexcept {
  const std::lock_guard lock(mutex_);
  taken_[room.device] -= room.bytes;
}

}  // namespace quadriga
