// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/device_messages_test.cpp: messages from and to memory of emulated devices:
// between processes, between threads, by every way.
#include <gtest/gtest.h>
#include <quadriga/machine.h>
#include <signal.h>

#include <chrono>
#include <cstring>
#include <numeric>

#include "endpoints.h"
#include "message/communicator.h"
#include "message/device_moves.h"
#include "message/join.h"
#include "processes.h"

namespace quadriga::message::testing {
namespace {

const Patience enough{30, {}};
constexpr auto token_text = "00112233445566778899aabbccddeeff";

std::shared_ptr<DevicePort> emulated(const std::string& devices = "emulated:2,memory=64MiB") {
  return DevicePort::open(Machine::parse(devices));
}

/// Doubles on a device, or on the host without a port.
struct Numbers {
  Numbers(std::shared_ptr<DevicePort> of, DeviceId on, std::vector<double> content)
      : port(std::move(of)), device(on), host(std::move(content)) {
    if (!port) return;
    memory = port->allocate(device, host.size() * sizeof(double) + 64);
    expect(memory != nullptr, "the device is full");
    write_all(place(), std::as_bytes(std::span(host)));
  }
  ~Numbers() {
    if (port) port->deallocate(device, memory);
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

std::vector<double> counted(std::size_t count, double first) {
  std::vector<double> made(count);
  std::iota(made.begin(), made.end(), first);
  return made;
}

CommunicatorCore joined(const std::string& address, int rank, int size = 2) {
  return CommunicatorCore(join({address, rank, size, parse_token(token_text)}, enough));
}

// Sizes around those at which something changes: slots, blocks, segments.
const std::vector<std::size_t> sizes{1, 3, 512, 1000, 1025, 40'000, 262'144, 262'145, 1'000'003};

// Rank 0 sends from its device or host to rank 1's, all sizes.
void exchange_sizes(const std::string& address, int rank, bool from_device, bool to_device) {
  const bool on_device = rank == 0 ? from_device : to_device;
  const auto port = on_device ? emulated() : nullptr;
  CommunicatorCore comm = joined(address, rank);
  for (const std::size_t count : sizes) {
    Numbers numbers(port, static_cast<DeviceId>(rank), counted(count, rank == 0 ? 7 : -1e6));
    if (rank == 0) {
      comm.send(numbers.place(), 1, 5, enough);
      continue;
    }
    const MessageStatus status = comm.receive(numbers.place(), 0, 5, enough);
    expect(status.bytes == count * sizeof(double), "another size");
    expect(numbers.content() == counted(count, 7), "other content");
  }
  comm.barrier(enough);
}

std::vector<int> run_sizes(bool from_device, bool to_device) {
  const std::string address = file_address();
  return as_processes(2, [&](int rank) { exchange_sizes(address, rank, from_device, to_device); });
}
const std::vector<int> passed{0, 0};

TEST(DeviceMessages, FromDeviceToDevice) { EXPECT_EQ(run_sizes(true, true), passed); }
TEST(DeviceMessages, FromHostToDevice) { EXPECT_EQ(run_sizes(false, true), passed); }
TEST(DeviceMessages, FromDeviceToHost) { EXPECT_EQ(run_sizes(true, false), passed); }

}  // namespace
}  // namespace quadriga::message::testing
