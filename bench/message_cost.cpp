// SPDX-License-Identifier: BSD-3-Clause
// bench/message_cost.cpp: one message alone, and several in flight, each of which adds what keeps a
// thread busy; their bytes are few.
#include "message_cost.h"

#include <quadriga/error.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "line.h"
#include "message/communicator.h"
#include "message/ports.h"

namespace quadriga::bench {
namespace {

using message::CommunicatorCore;
using message::DevicePort;
using message::ElementType;
using message::Layout;
using message::MessageBuffer;

constexpr std::int64_t bytes = 4096;
constexpr int most_in_flight = 16;
constexpr double least_seconds = 1e-9;  // As descriptions have it.
const message::Patience patient{60, {}};

class Rank {
 public:
  Rank(const std::shared_ptr<message::Endpoint>& endpoint, std::shared_ptr<DevicePort> port,
       DeviceId device)
      : communicator_(endpoint),
        port_(std::move(port)),
        device_(device),
        memory_(port_->memory().allocate(device, bytes * most_in_flight)) {
    if (!memory_) fail(Errc::unavailable, "a device has no room for messages");
  }
  ~Rank() { port_->memory().deallocate(device_, memory_); }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  // Seconds until the receiver has so many messages.
  double seconds(int count) {
    const bool sends = communicator_.rank() == 0;
    std::vector<message::TransferPtr> all;
    communicator_.barrier(patient);
    const double begin = now();
    for (int i = 0; i < count; ++i) {
      const MessageBuffer place{Layout::contiguous(bytes, ElementType::bytes), memory_ + i * bytes,
                                port_, device_};
      all.push_back(sends ? communicator_.start_send(place, 1, i, {}, {})
                          : communicator_.start_receive(place, 0, i, {}, {}));
    }
    for (const auto& each : all) communicator_.endpoint().wait(each, patient);
    return now() - begin;
  }
  double median_seconds(int count, int repeat) {
    std::vector<double> found;
    seconds(count);  // Opens what is opened once.
    for (int i = 0; i < repeat; ++i) found.push_back(seconds(count));
    return median(std::move(found));
  }

 private:
  CommunicatorCore communicator_;
  std::shared_ptr<DevicePort> port_;
  DeviceId device_;
  std::byte* memory_;
};

struct Place {
  std::shared_ptr<DevicePort> port;
  DeviceId device = 0;
};

// Of the first and the second device with memory, or both of the only one.
std::vector<Place> places_of(const Machine& machine) {
  std::vector<Place> places;
  std::shared_ptr<DevicePort> emulated;
  for (DeviceId id = 0; id < machine.devices.size() && places.size() < 2; ++id) {
    const Device& device = machine.devices[id];
    if (device.space == host_space) continue;
    if (device.kind == DeviceKind::cuda) {
      places.push_back({message::ports::cuda(static_cast<int>(places.size())), 0});
      continue;
    }
    if (!emulated) emulated = message::ports::open(machine);
    places.push_back({emulated, id});
  }
  if (places.size() == 1) places.push_back(places.front());
  return places;
}

}  // namespace

MessageCost message_cost(const Machine& machine, int repeat) {
  const std::vector<Place> places = places_of(machine);
  if (places.empty()) return {};
  MessageCost cost;
  std::exception_ptr error;
  const auto endpoints = message::local_endpoints(2);
  const auto run = [&](std::size_t rank) {
    Rank own(endpoints[rank], places[rank].port, places[rank].device);
    const double one = own.median_seconds(1, repeat);
    const double all = own.median_seconds(most_in_flight, repeat);
    if (rank == 0) return;
    cost.latency_seconds = std::max(one, least_seconds);
    cost.busy_seconds = std::clamp((all - one) / (most_in_flight - 1), 0.0, cost.latency_seconds);
  };
  std::thread sender([&] {
    try {
      run(0);
    } catch (...) {
      error = std::current_exception();
    }
  });
  try {
    run(1);
  } catch (...) {
    sender.join();
    if (error) std::rethrow_exception(error);  // It may be why nothing came here.
    throw;
  }
  sender.join();
  if (error) std::rethrow_exception(error);
  return cost;
}

}  // namespace quadriga::bench
