// SPDX-License-Identifier: BSD-3-Clause
// src/device/emulated/virtual_backend.cpp: the calls of the contract; events are in
// virtual_events.cpp.
#include "device/emulated/virtual_backend.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>

namespace quadriga {

VirtualBackend::VirtualBackend(Machine machine, VirtualOptions options)
    : machine_(std::move(machine)),
      options_(options),
      times_(machine_, options.noise, options.seed),
      links_(machine_),
      queues_(machine_),
      routes_(machine_) {
  require(options_.compute || !options_.protect, "protecting memory needs variants that compute");
  for (const Device& device : machine_.devices) {
    devices_.push_back({VirtualKernels(device.compute_streams, device.kind != DeviceKind::cpu)});
    if (device.space == host_space) continue;
    devices_.back().memory = static_cast<int>(memories_.size());
    memories_.emplace_back(device.memory_bytes, options_.compute);
  }
}

std::byte* VirtualBackend::allocate(DeviceId device, std::size_t bytes) {
  checked_device(machine_, device);
  const int memory = devices_[device].memory;
  return memory < 0 ? nullptr : memories_[memory].allocate(bytes);
}

void VirtualBackend::deallocate(DeviceId device, std::byte* memory) noexcept {
  if (device < devices_.size() && devices_[device].memory >= 0) {
    memories_[devices_[device].memory].deallocate(memory);
  }
}

StreamId VirtualBackend::create_stream(DeviceId device, StreamKind kind) {
  checked_device(machine_, device);
  Stream stream;
  stream.device = device;
  stream.place = queues_.add_stream(device);
  stream.kind = kind;
  streams_.push_back(std::move(stream));
  return static_cast<StreamId>(streams_.size() - 1);
}

int VirtualBackend::route_index(const Copy& copy) const {
  const int route = routes_.find(copy.from, copy.to, copy.node);
  check_copy(machine_, copy, route == RouteTable::none ? nullptr : &machine_.routes[route]);
  return route;
}

Event VirtualBackend::copy(StreamId stream, const Copy& copy) {
  check_stream(stream, streams_.size());
  Queued queued;
  queued.route = route_index(copy);
  queued.operation = copy;
  queued.limit = limit_by_runs(machine_, machine_.routes[queued.route], copy);
  queued.work = times_.with_noise(static_cast<double>(bytes_of(copy)), sequence_ + 1);
  return enqueue(stream, std::move(queued));
}

Event VirtualBackend::launch(StreamId stream, const Launch& launch) {
  check_stream(stream, streams_.size());
  if (options_.compute) check_launch(launch);
  Queued queued;
  queued.operation = launch;
  try {
    const Device& device = machine_.devices[streams_[stream].device];
    queued.work = times_.with_noise(times_.seconds(launch, device) * 1e9, sequence_ + 1);
    queued.speeds = times_.speeds(launch, device);
  } catch (const Error&) {
    queued.error = std::current_exception();
  }
  return enqueue(stream, std::move(queued));
}

Event VirtualBackend::enqueue(StreamId stream, Queued queued) {
  Stream& target = streams_[stream];
  queued.sequence = ++sequence_;
  queues_.push(target.place, kind_of(queued.operation), queued.sequence);
  if (target.queue.empty()) ready_.push_back(stream);
  target.queue.push(std::move(queued));
  ++queued_;
  return {stream, ++target.issued};
}

void VirtualBackend::wait(StreamId stream, Event event) {
  check_stream(stream, streams_.size());
  if (!event) return;
  check_stream(event.stream, streams_.size());
  if (event.ticket > streams_[event.stream].issued) {
    fail(Errc::invalid_argument,
         fmt::format("stream {} has made no event {} yet", event.stream, event.ticket));
  }
  if (event.stream == stream || event.ticket <= streams_[event.stream].ended) return;
  Queued queued;
  queued.operation = event;
  if (streams_[stream].queue.empty()) ready_.push_back(stream);
  streams_[stream].queue.push(std::move(queued));
}

std::size_t VirtualBackend::next_completion(std::span<Completion> out, Nanoseconds deadline) {
  while (true) {
    settle();
    if (!completions_.empty()) return deliver(out);
    if (woken_.exchange(false)) return 0;
    if (queued_ == 0) return 0;
    const Nanoseconds next = next_moment();
    // Waits name events that exist already, so the oldest operation can always run.
    if (next == never) fail(Errc::internal, "queued operations of the virtual clock can't start");
    if (next > deadline) {
      now_.store(std::max(now(), deadline), std::memory_order_relaxed);
      return 0;
    }
    now_.store(next, std::memory_order_relaxed);
    take_ended();
  }
}

std::size_t VirtualBackend::deliver(std::span<Completion> out) {
  woken_.store(false);
  std::size_t count = 0;
  while (count < out.size() && !completions_.empty()) out[count++] = completions_.pop();
  return count;
}

std::unique_ptr<Backend> make_virtual_backend(Machine machine, VirtualOptions options) {
  return std::make_unique<VirtualBackend>(std::move(machine), options);
}

}  // namespace quadriga
