// SPDX-License-Identifier: BSD-3-Clause
// examples/device_messages.cpp: a column of a matrix in a device's memory becomes a row of the
// next rank of a ring: device_messages [cuda:0]; the default is emulated devices.
// Build: c++ -std=c++20 device_messages.cpp $(pkg-config --cflags --libs quadriga)
// Run:   quadriga launch -n 4 ./device_messages
#include <quadriga/message.h>
#include <quadriga/message_devices.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

namespace {

namespace message = quadriga::message;
constexpr std::int64_t rows = 300, columns = 200;

// Sends the last column to the right as the first row of the next rank; false if it came wrong.
bool pass(const message::Communicator& comm, const message::Devices& devices) {
  const int device = comm.rank() % devices.count();
  const int right = (comm.rank() + 1) % comm.size();
  const int left = (comm.rank() + comm.size() - 1) % comm.size();
  const std::vector<double> content(rows * columns, comm.rank());
  const std::size_t bytes = content.size() * sizeof(double);
  auto* const matrix = static_cast<double*>(devices.allocate(device, bytes));
  auto* const row = static_cast<double*>(devices.allocate(device, rows * sizeof(double)));
  devices.write(device, matrix, content.data(), bytes);

  const auto column = message::Layout::vector(rows, 1, columns, message::ElementType::float64);
  const auto side_by_side = message::Layout::contiguous(rows, message::ElementType::float64);
  const message::Request arriving = comm.irecv(devices.received(row, side_by_side, device), left);
  comm.send(devices.sent(matrix + columns - 1, column, device), right);
  arriving.wait();

  std::vector<double> got(rows);
  devices.read(device, row, got.data(), rows * sizeof(double));
  devices.deallocate(device, row);
  devices.deallocate(device, matrix);
  return got == std::vector<double>(rows, left);
}

}  // namespace

int main(int count, char** words) {
  try {
    const message::Communicator comm = message::world();
    const message::Devices devices(count > 1 ? words[1] : "emulated:2,memory=16MiB,peer=20GB/s");
    const bool passed = pass(comm, devices);
    std::printf("rank %d of %d: a column arrived %s\n", comm.rank(), comm.size(),
                passed ? "as a row" : "wrong");
    comm.barrier();
    return passed ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
