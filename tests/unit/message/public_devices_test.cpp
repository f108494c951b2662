// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/public_devices_test.cpp: the public devices' memory and streams in messages.
#include <gtest/gtest.h>
#include <quadriga/error.h>
#include <quadriga/message.h>
#include <quadriga/message_devices.h>

#include <numeric>
#include <optional>
#include <vector>

#include "unit/message/public_ranks.h"

namespace quadriga::message::testing {
namespace {

constexpr auto text = "emulated:2,memory=8MiB,peer=20GB/s";

std::vector<double> counted(std::size_t count, double first) {
  std::vector<double> made(count);
  std::iota(made.begin(), made.end(), first);
  return made;
}

// Numbers in a device's memory.
struct Numbers {
  Numbers(const Devices& of, int where, const std::vector<double>& content)
      : devices(of),
        device(where),
        count(content.size()),
        data(static_cast<double*>(of.allocate(where, count * sizeof(double)))) {
    set(content);
  }
  ~Numbers() { devices.deallocate(device, data); }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;
  void set(const std::vector<double>& content) const {
    devices.write(device, data, content.data(), count * sizeof(double));
  }
  Layout layout() const {
    return Layout::contiguous(static_cast<std::int64_t>(count), ElementType::float64);
  }
  std::vector<double> content() const {
    std::vector<double> got(count);
    devices.read(device, data, got.data(), count * sizeof(double));
    return got;
  }
  Devices devices;
  int device;
  std::size_t count;
  double* data;
};

TEST(MessageDevices, MemoryOfDevicesTravelsAsTheHostsDoes) {
  const Devices devices(text);
  as_ranks(2, [&](const Communicator& comm) {
    const int other = 1 - comm.rank();
    Numbers own(devices, comm.rank(), counted(50'000, comm.rank()));
    Numbers got(devices, comm.rank(), counted(50'000, -1));
    std::vector<double> host(50'000);
    comm.sendrecv(devices.sent(own.data, own.layout(), own.device), other,
                  devices.received(got.data, got.layout(), got.device), other);
    EXPECT_EQ(got.content(), counted(50'000, other));
    comm.sendrecv(devices.sent(own.data, own.layout(), own.device), other, host, other);
    EXPECT_EQ(host, counted(50'000, other));
    comm.allreduce(devices.sent(own.data, own.layout(), own.device),
                   devices.received(got.data, got.layout(), got.device), ReduceOperation::max);
    EXPECT_EQ(got.content(), counted(50'000, 1));
  });
}

TEST(MessageDevices, MessagesKeepTheOrderOfAStream) {
  const Devices devices(text);
  as_ranks(2, [&](const Communicator& comm) {
    const int other = 1 - comm.rank();
    const std::uintptr_t stream = devices.open_stream(comm.rank());
    Numbers own(devices, comm.rank(), counted(50'000, 0)), got(devices, comm.rank(), own.content());
    Numbers back(devices, comm.rank(), own.content()), most(devices, comm.rank(), own.content());
    for (int round = 0; round < 5; ++round) {
      own.set(counted(50'000, 10. * round + comm.rank()));
      got.set(counted(50'000, -1));
      back.set(counted(50'000, -2));
      const Request arriving =
          comm.irecv(devices.received(got.data, got.layout(), got.device, stream), other);
      comm.send(devices.sent(own.data, own.layout(), own.device, stream), other);
      EXPECT_EQ(arriving.wait().bytes, 400'000u);
      // What was received goes back, by the stream's order alone.
      comm.sendrecv(devices.sent(got.data, got.layout(), got.device, stream), other,
                    devices.received(back.data, back.layout(), back.device, stream), other);
      // A collective waits for the stream on the host.
      comm.allreduce(devices.sent(back.data, back.layout(), back.device, stream),
                     devices.received(most.data, most.layout(), most.device), ReduceOperation::max);
      EXPECT_EQ(got.content(), counted(50'000, 10. * round + other));
      EXPECT_EQ(back.content(), own.content());
      EXPECT_EQ(most.content(), counted(50'000, 10. * round + 1));
    }
  });
}

TEST(MessageDevices, WrongOnesAreNamed) {
  const auto error_of = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(error_of([] { Devices("cuda:x"); }).find("expected cuda:NUMBER"), std::string::npos);
  EXPECT_NE(error_of([] { Devices("cpu:2"); }).find("expected emulated devices"),
            std::string::npos);
  const Devices devices(text);
  EXPECT_EQ(devices.count(), 2);
  EXPECT_NE(error_of([&] { devices.allocate(2, 8); }).find("device 2; expected 0 to 1"),
            std::string::npos);
  EXPECT_NE(error_of([&] { devices.allocate(0, 9 << 20); }).find("memory left"), std::string::npos);
}

}  // namespace
}  // namespace quadriga::message::testing
