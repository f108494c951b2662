// SPDX-License-Identifier: BSD-3-Clause
// src/message/port_operations.cpp: queues operations, and asks the backend what has ended.
#include "message/port_operations.h"

#include <array>

namespace quadriga::message {
namespace {

StreamKind kind_of(PortLane lane) {
  if (lane == PortLane::in) return StreamKind::copy_in;
  if (lane == PortLane::nccl) return StreamKind::compute;
  return lane == PortLane::out ? StreamKind::copy_out : StreamKind::peer_in;
}

}  // namespace

// With the lock, as are all private functions.
StreamId PortOperations::create(DeviceId device, StreamKind kind) {
  const StreamId made = backend_.create_stream(device, kind);
  reached_.resize(made + 1);
  issued_.resize(made + 1);
  return made;
}

StreamId PortOperations::stream_of(DeviceId device, PortLane lane) {
  const auto found = lanes_.find({device, lane});
  if (found != lanes_.end()) return found->second;
  return lanes_[{device, lane}] = create(device, kind_of(lane));
}

PortTicket PortOperations::launch_on(StreamId stream, Kernel variant, bool waits) {
  auto kernel = std::make_unique<Kernel>(std::move(variant));
  Launch launch;
  launch.kernel = kernel.get();
  launch.name = "message";
  launch.waits = waits;
  launch.meets = waits;  // What a program's stream calls may wait for messages' own kernels.
  const PortTicket ticket = backend_.launch(stream, launch);
  kernels_[{ticket.stream, ticket.ticket}] = std::move(kernel);
  issued_[ticket.stream] = ticket.ticket;
  return ticket;
}

bool PortOperations::look(Nanoseconds patience) {
  std::array<Completion, 16> ended;
  const Nanoseconds until = patience > 0 ? backend_.now() + patience : 0;
  const std::size_t count = backend_.next_completion(ended, until);
  for (std::size_t i = 0; i < count; ++i) {
    const Event event = ended[i].event;
    reached_[event.stream] = event.ticket;
    kernels_.erase({event.stream, event.ticket});
    if (ended[i].error) errors_[{event.stream, event.ticket}] = ended[i].error;
  }
  return count > 0;
}

PortTicket PortOperations::copy(DeviceId device, PortLane lane, const Copy& copy) {
  const std::lock_guard lock(mutex_);
  const PortTicket ticket = backend_.copy(stream_of(device, lane), copy);
  issued_[ticket.stream] = ticket.ticket;
  return ticket;
}

PortTicket PortOperations::launch(DeviceId device, PortLane lane, Kernel variant) {
  const std::lock_guard lock(mutex_);
  return launch_on(stream_of(device, lane), std::move(variant), false);
}

// Without the lock: a library takes its time.
void PortOperations::prepare(DeviceId device, PortLane lane, const Kernel& variant) {
  const StreamId stream = [&] {
    const std::lock_guard lock(mutex_);
    return stream_of(device, lane);
  }();
  backend_.prepare(stream, variant);
}

bool PortOperations::has_ended(PortTicket ticket) {
  if (!ticket) return true;
  const std::lock_guard lock(mutex_);
  while (ticket.ticket > reached_[ticket.stream] && look(0)) {
  }
  if (ticket.ticket > reached_[ticket.stream]) return false;
  const auto found = errors_.find({ticket.stream, ticket.ticket});
  if (found == errors_.end()) return true;
  const std::exception_ptr error = found->second;
  errors_.erase(found);
  std::rethrow_exception(error);
}

void PortOperations::finish(PortTicket ticket) noexcept {
  constexpr Nanoseconds slice = 1'000'000;
  try {
    while (ticket) {
      const std::lock_guard lock(mutex_);
      if (ticket.ticket <= reached_[ticket.stream]) break;
      look(slice);
    }
    if (ticket) {
      const std::lock_guard lock(mutex_);
      errors_.erase({ticket.stream, ticket.ticket});
    }
  } catch (...) {
    // A backend that fails has nothing under way any more.
  }
}

void PortOperations::finish_lanes() noexcept {
  std::vector<PortTicket> last;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [_, stream] : lanes_) last.push_back({stream, issued_[stream]});
  }
  for (const PortTicket each : last) finish(each);
}

StreamId PortOperations::open(DeviceId device) {
  const std::lock_guard lock(mutex_);
  return create(device, StreamKind::compute);
}

PortTicket PortOperations::call(StreamId stream, Kernel function) {
  const std::lock_guard lock(mutex_);
  return launch_on(stream, std::move(function), true);
}

PortTicket PortOperations::last(StreamId stream) {
  const std::lock_guard lock(mutex_);
  return {stream, issued_[stream]};
}

void PortOperations::follow(StreamId stream, DeviceId device, PortLane lane) {
  const std::lock_guard lock(mutex_);
  const StreamId own = stream_of(device, lane);
  if (issued_[own] == 0) return;
  backend_.wait(stream, {own, issued_[own]});
  launch_on(
      stream, [](const Arguments&) {}, true);  // What is last there comes behind it.
}

}  // namespace quadriga::message
