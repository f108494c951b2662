// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/device_numbers.h: numbers in memory of emulated devices, and ranks for them.
#pragma once

#include <quadriga/machine.h>

#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "message/communicator.h"
#include "message/device_moves.h"
#include "message/join.h"
#include "message/ports.h"
#include "unit/message/processes.h"

namespace quadriga::message::testing {

inline const Patience enough{90, {}};
inline constexpr auto token_text = "00112233445566778899aabbccddeeff";

inline std::shared_ptr<DevicePort> emulated(
    const std::string& devices = "emulated:2,memory=64MiB") {
  return ports::open(Machine::parse(devices));
}

/// Doubles on a device, or on the host without a port.
struct Numbers {
  Numbers(std::shared_ptr<DevicePort> of, DeviceId on, std::vector<double> content)
      : port(std::move(of)), device(on), host(std::move(content)) {
    if (!port) return;
    memory = port->memory().allocate(device, host.size() * sizeof(double) + 64);
    expect(memory != nullptr, "the device is full");
    write_all(place(), std::as_bytes(std::span(host)));
  }
  ~Numbers() {
    if (port) port->memory().deallocate(device, memory);
  }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;
  Numbers(Numbers&&) = delete;
  MessageBuffer place(Layout layout) {
    if (!port) return {std::move(layout), reinterpret_cast<std::byte*>(host.data())};
    return {std::move(layout), memory, port, device};
  }
  MessageBuffer place() {
    return place(Layout::contiguous(static_cast<std::int64_t>(host.size()), ElementType::float64));
  }
  std::vector<double> content() {
    if (port) read_all(place(), std::as_writable_bytes(std::span(host)));
    return host;
  }
  std::shared_ptr<DevicePort> port;
  DeviceId device;
  std::vector<double> host;
  std::byte* memory = nullptr;
};

inline std::vector<double> counted(std::size_t count, double first) {
  std::vector<double> made(count);
  std::iota(made.begin(), made.end(), first);
  return made;
}

inline CommunicatorCore joined(const std::string& address, int rank, int size = 2) {
  return CommunicatorCore(join({address, rank, size, parse_token(token_text)}, enough));
}

}  // namespace quadriga::message::testing
