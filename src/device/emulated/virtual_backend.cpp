// SPDX-License-Identifier: BSD-3-Clause
// src/device/emulated/virtual_backend.cpp: the calls of the contract; events are in
// virtual_events.cpp.
#include "device/emulated/virtual_backend.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace quadriga {

VirtualBackend::VirtualBackend(Machine machine, VirtualOptions options)
    : machine_(std::move(machine)),
      options_(options),
      share_(machine_),
      queues_(machine_),
      routes_(machine_) {
  require(options_.noise >= 0 && options_.noise < 1, "the noise of a virtual clock is in [0, 1)");
  require(options_.compute || !options_.protect, "protecting memory needs variants that compute");
  for (const Route& route : machine_.routes) {
    double seconds = 0;
    for (const int link : route.links) seconds += machine_.links[link].latency_seconds;
    latencies_.push_back(seconds * 1e9);
  }
  tells_at_once_ = std::ranges::any_of(
      machine_.kernels, [](const auto& row) { return row.first.find('*') != std::string::npos; });
  devices_.resize(machine_.devices.size());
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    if (machine_.devices[i].space == host_space) continue;
    devices_[i].memory = static_cast<int>(memories_.size());
    memories_.emplace_back(machine_.devices[i].memory_bytes, options_.compute);
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

// Drawn by the operation's number, so that it doesn't depend on what else goes on.
double VirtualBackend::with_noise(double duration, std::uint64_t sequence) const noexcept {
  if (options_.noise == 0) return duration;
  const auto bits = mix(options_.seed ^ mix(sequence)) >> 11;
  return duration * (1 + options_.noise * (2 * static_cast<double>(bits) * 0x1p-53 - 1));
}

Event VirtualBackend::copy(StreamId stream, const Copy& copy) {
  check_stream(stream, streams_.size());
  Queued queued;
  queued.route = route_index(copy);
  queued.operation = copy;
  queued.limit = limit_by_runs(machine_, machine_.routes[queued.route], copy);
  queued.work = with_noise(static_cast<double>(bytes_of(copy)), sequence_ + 1);
  return enqueue(stream, std::move(queued));
}

Event VirtualBackend::launch(StreamId stream, const Launch& launch) {
  check_stream(stream, streams_.size());
  if (options_.compute) check_launch(launch);
  Queued queued;
  queued.operation = launch;
  try {
    const double seconds = seconds_of(launch, machine_.devices[streams_[stream].device]);
    queued.work = with_noise(seconds * 1e9, sequence_ + 1);
    if (tells_at_once_)
      queued.speeds = speeds_of(launch, machine_.devices[streams_[stream].device]);
  } catch (const Error&) {
    queued.error = std::current_exception();
  }
  return enqueue(stream, std::move(queued));
}

// Errors: unavailable if it isn't known, invalid_argument if it is no time.
double VirtualBackend::seconds_of(const Launch& launch, const Device& device) const {
  const Cost& cost = launch.cost;
  if (cost.kernel == no_work) return 0;
  if (cost.kernel.empty()) {
    fail(Errc::unavailable,
         fmt::format("codelet '{}' has no cost, which the virtual clock needs: give it a 'cost' "
                     "that names a kernel of the machine's table",
                     launch.name));
  }
  const double seconds = machine_.launch_seconds +
                         machine_.kernel_seconds(device, cost.kernel, cost.order, cost.volume);
  if (!(seconds >= 0 && seconds < 1e9)) {
    fail(Errc::invalid_argument,
         fmt::format("codelet '{}' would take {} s by its cost (order {}, volume {})", launch.name,
                     seconds, cost.order, cost.volume));
  }
  return seconds;
}

// By the table's rows "dgemm*2" and "dgemm*3"; a kernel is slowed down by others, and never more
// than if they took turns.
VirtualBackend::Speeds VirtualBackend::speeds_of(const Launch& launch, const Device& device) const {
  Speeds speeds = alike;
  const Cost& cost = launch.cost;
  for (std::size_t count = 2; count <= speeds.size(); ++count) {
    const std::string row = row_at_once(cost.kernel, count);
    const auto others = static_cast<double>(count);
    speeds[count - 1] = speeds[count - 2] * (others - 1) / others;
    if (!machine_.has_kernel(device, row)) continue;
    const double alone = machine_.kernel_seconds(device, cost.kernel, cost.order, cost.volume);
    const double beside = machine_.kernel_seconds(device, row, cost.order, cost.volume);
    speeds[count - 1] = std::clamp(alone / beside, 1 / others, 1.0);
  }
  return speeds;
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
