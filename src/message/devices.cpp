// SPDX-License-Identifier: BSD-3-Clause
// src/message/devices.cpp: the public devices of messages, on the library's ports.
#include <quadriga/error.h>
#include <quadriga/machine.h>
#include <quadriga/message_devices.h>

#include <charconv>
#include <span>
#include <utility>

#include "device/kinds.h"
#include "message/device_moves.h"
#include "message/ports.h"

namespace quadriga::message {
namespace {

std::shared_ptr<DevicePort> port_for(const std::string& devices) {
  constexpr std::string_view one_gpu = "cuda:";
  if (devices.starts_with(one_gpu)) {
    int ordinal = -1;
    const char* const end = devices.data() + devices.size();
    const auto read = std::from_chars(devices.data() + one_gpu.size(), end, ordinal);
    require(read.ec == std::errc() && read.ptr == end && ordinal >= 0,
            "Devices: '" + devices + "': expected cuda:NUMBER");
    return ports::cuda(ordinal);
  }
  Machine machine = Machine::parse(devices);
  for (const Device& each : machine.devices)
    require(properties_of(each.kind).messages == MessageMemory::of_machine,
            "Devices: '" + devices + "': expected emulated devices, or cuda:NUMBER");
  return ports::open(std::move(machine));
}

MessageBuffer bytes_at(const std::shared_ptr<DevicePort>& port, int device, const void* memory,
                       std::size_t bytes) {
  return {Layout::contiguous(static_cast<std::int64_t>(bytes), ElementType::bytes),
          static_cast<std::byte*>(const_cast<void*>(memory)), port,
          static_cast<std::uint16_t>(device)};
}

}  // namespace

Devices::Devices(const std::string& devices) : port_(port_for(devices)) {}

int Devices::count() const noexcept { return static_cast<int>(port_->machine().devices.size()); }

DeviceMemory Devices::memory(int device, std::optional<std::uintptr_t> stream) const {
  require(device >= 0 && device < count(), "Devices: device " + std::to_string(device) +
                                               "; expected 0 to " + std::to_string(count() - 1));
  return {port_, static_cast<std::uint16_t>(device), stream};
}

void* Devices::allocate(int device, std::size_t bytes) const {
  void* const made = port_->memory().allocate(memory(device, {}).device, bytes);
  if (!made)
    fail(Errc::too_large, "Devices: device " + std::to_string(device) + " has no " +
                              std::to_string(bytes) + " bytes of memory left");
  return made;
}

void Devices::deallocate(int device, void* memory) const noexcept {
  if (memory)
    port_->memory().deallocate(static_cast<DeviceId>(device), static_cast<std::byte*>(memory));
}

void Devices::write(int device, void* memory, const void* from, std::size_t bytes) const {
  write_all(bytes_at(port_, device, memory, bytes), {static_cast<const std::byte*>(from), bytes});
}

void Devices::read(int device, const void* memory, void* into, std::size_t bytes) const {
  read_all(bytes_at(port_, device, memory, bytes), {static_cast<std::byte*>(into), bytes});
}

SendBuffer Devices::sent(const void* data, Layout layout, int device,
                         std::optional<std::uintptr_t> stream) const {
  return {data, std::move(layout), memory(device, stream)};
}

ReceiveBuffer Devices::received(void* data, Layout layout, int device,
                                std::optional<std::uintptr_t> stream) const {
  return {data, std::move(layout), memory(device, stream)};
}

std::uintptr_t Devices::open_stream(int device) const {
  return port_->streams().open(memory(device, {}).device);
}

}  // namespace quadriga::message
