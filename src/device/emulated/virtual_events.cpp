// SPDX-License-Identifier: BSD-3-Clause
// src/device/emulated/virtual_events.cpp: how operations start, share what they use, and end.
//
// The time stands still while settle() starts what can start; then the next moment at which
// something ends is found, all that ends then ends, and so on.
#include <algorithm>
#include <cmath>

#include "device/emulated/guard.h"
#include "device/emulated/virtual_backend.h"

namespace quadriga {
namespace {

// Durations are rounded up to whole nanoseconds, less what is but the rounding of a double.
Nanoseconds whole(double nanoseconds) {
  return static_cast<Nanoseconds>(std::max(0.0, std::ceil(nanoseconds - 1e-3)));
}

}  // namespace

void VirtualBackend::settle() {
  for (const StreamId stream : ready_) collect(stream);
  ready_.clear();
  std::ranges::sort(starting_, {},
                    [this](StreamId stream) { return streams_[stream].queue.front().sequence; });
  for (const StreamId stream : starting_) start(stream);
  starting_.clear();
  for (const DeviceId device : admitting_) admit(device);
  admitting_.clear();
}

// Passes the waits at the front of the queue whose events have passed.
void VirtualBackend::collect(StreamId id) {
  Stream& stream = streams_[id];
  while (!stream.queue.empty() && !stream.busy) {
    const Event* awaited = std::get_if<Event>(&stream.queue.front().operation);
    if (awaited == nullptr) {
      stream.busy = true;
      starting_.push_back(id);
    } else if (streams_[awaited->stream].ended < awaited->ticket) {
      park(id, *awaited);
      return;
    } else {
      stream.queue.pop();
    }
  }
}

void VirtualBackend::park(StreamId id, Event event) {
  streams_[id].awaited = event.ticket;
  streams_[id].next_waiter = streams_[event.stream].first_waiter;
  streams_[event.stream].first_waiter = id;
}

void VirtualBackend::start(StreamId id) {
  const Stream& stream = streams_[id];
  DeviceState& device = devices_[stream.device];
  const bool is_copy = std::holds_alternative<Copy>(stream.queue.front().operation);
  (is_copy ? device.pending_copies : device.pending).push_back(id);
  admitting_.push_back(stream.device);
}

void VirtualBackend::start_copy(StreamId id) {
  Stream& stream = streams_[id];
  const Queued& queued = stream.queue.front();
  stream.begin = now();
  queues_.begin(stream.place, HardwareQueues::Kind::copy);
  moments_.push_back(
      {now() + whole(latencies_[queued.route]), queued.sequence, Moment::Kind::latency, id, 0});
  std::ranges::push_heap(moments_, Later{});
}

void VirtualBackend::admit(DeviceId id) {
  admit_copies(devices_[id]);
  admit_kernels(id);
}

void VirtualBackend::admit_copies(DeviceState& device) {
  std::ranges::sort(device.pending_copies, {},
                    [this](StreamId stream) { return streams_[stream].queue.front().sequence; });
  for (auto next = next_pending(device.pending_copies, HardwareQueues::Kind::copy);
       next != device.pending_copies.end();
       next = next_pending(device.pending_copies, HardwareQueues::Kind::copy)) {
    start_copy(*next);
    device.pending_copies.erase(next);
  }
}

// The first of these streams whose front can begin.
std::vector<StreamId>::iterator VirtualBackend::next_pending(std::vector<StreamId>& pending,
                                                             HardwareQueues::Kind kind) {
  return std::ranges::find_if(pending, [&](StreamId stream) {
    return queues_.can_begin(streams_[stream].place, kind, streams_[stream].queue.front().sequence);
  });
}

// Fills the device's free slots with waiting kernels, panels first, then by sequence number.
void VirtualBackend::admit_kernels(DeviceId id) {
  DeviceState& device = devices_[id];
  const auto slots = static_cast<std::size_t>(std::max(1, machine_.devices[id].compute_streams));
  if (device.pending.empty() || device.running.size() >= slots) return;
  std::ranges::sort(device.pending, {}, [this](StreamId stream) {
    return std::pair(streams_[stream].kind != StreamKind::panel,
                     streams_[stream].queue.front().sequence);
  });
  advance_device(id);
  while (device.running.size() < slots) {
    const auto next = next_pending(device.pending, HardwareQueues::Kind::kernel);
    if (next == device.pending.end()) break;
    start_kernel(*next);
    device.pending.erase(next);
  }
  schedule_device(id);
}

void VirtualBackend::start_kernel(StreamId id) {
  Stream& stream = streams_[id];
  DeviceState& device = devices_[stream.device];
  const Queued& queued = stream.queue.front();
  stream.begin = now();
  queues_.begin(stream.place, HardwareQueues::Kind::kernel);
  device.running.push_back({id, queued.sequence, queued.work, queued.speeds});
  if (machine_.devices[stream.device].kind != DeviceKind::cpu) return;
  moments_.push_back({now() + whole(queued.work), queued.sequence, Moment::Kind::kernel, id, 0});
  std::ranges::push_heap(moments_, Later{});
}

// More kernels than the table can tell of share what the most that it tells of reach.
double VirtualBackend::speed(const RunningKernel& kernel, std::size_t count) noexcept {
  const std::size_t known = std::min(count, kernel.speeds.size());
  return kernel.speeds[known - 1] * static_cast<double>(known) / static_cast<double>(count);
}

// Cores have nothing to share.
void VirtualBackend::advance_device(DeviceId id) {
  if (machine_.devices[id].kind == DeviceKind::cpu) return;
  DeviceState& device = devices_[id];
  const auto passed = static_cast<double>(now() - device.updated);
  for (RunningKernel& kernel : device.running)
    kernel.left -= passed * speed(kernel, device.running.size());
  device.updated = now();
}

// An accelerator has one valid moment at a time: when the next of its kernels ends.
void VirtualBackend::schedule_device(DeviceId id) {
  DeviceState& device = devices_[id];
  if (machine_.devices[id].kind == DeviceKind::cpu) return;
  ++device.generation;
  if (device.running.empty()) return;
  const auto wait_of = [&](const RunningKernel& kernel) {
    return kernel.left / speed(kernel, device.running.size());
  };
  const auto next = std::ranges::min_element(device.running, {}, [&](const RunningKernel& kernel) {
    return std::pair(wait_of(kernel), kernel.sequence);
  });
  const double wait = wait_of(*next);
  moments_.push_back(
      {now() + whole(wait), next->sequence, Moment::Kind::shared, id, device.generation});
  std::ranges::push_heap(moments_, Later{});
}

// Gives the flows their fair rates; a flow whose rate stays keeps its end to the nanosecond.
void VirtualBackend::share_links() {
  flows_changed_ = false;
  flow_rates_.resize(flows_.size());
  share_.rates(flow_routes_, flow_rates_, flow_limits_);
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    Flow& flow = flows_[i];
    const double rate = flow_rates_[i] * 1e-9;
    if (rate == flow.bytes_per_nanosecond) continue;
    flow.bytes_left -= flow.bytes_per_nanosecond * static_cast<double>(now() - flow.updated);
    flow.bytes_left = std::max(flow.bytes_left, 0.0);
    flow.bytes_per_nanosecond = rate;
    flow.updated = now();
    flow.end = now() + whole(flow.bytes_left / rate);
  }
}

Nanoseconds VirtualBackend::next_moment() {
  if (flows_changed_) share_links();
  while (!moments_.empty() && moments_.front().kind == Moment::Kind::shared &&
         moments_.front().generation != devices_[moments_.front().owner].generation) {
    std::ranges::pop_heap(moments_, Later{});
    moments_.pop_back();
  }
  Nanoseconds next = moments_.empty() ? never : moments_.front().time;
  for (const Flow& flow : flows_) next = std::min(next, flow.end);
  return next;
}

// Ends all that ends now, in order of sequence numbers.
void VirtualBackend::take_ended() {
  ended_.clear();
  for (std::size_t i = 0; i < flows_.size();) {
    if (flows_[i].end > now()) {
      ++i;
      continue;
    }
    ended_.push_back({flows_[i].stream, flows_[i].sequence});
    flows_[i] = flows_.back();
    flows_.pop_back();
    flow_routes_[i] = flow_routes_.back();
    flow_routes_.pop_back();
    flow_limits_[i] = flow_limits_.back();
    flow_limits_.pop_back();
    flows_changed_ = true;
  }
  while (!moments_.empty() && moments_.front().time <= now()) {
    std::ranges::pop_heap(moments_, Later{});
    const Moment moment = moments_.back();
    moments_.pop_back();
    take_moment(moment);
  }
  std::ranges::sort(ended_, {}, &Ended::sequence);
  for (const Ended& ended : ended_) finish(ended.stream);
}

void VirtualBackend::take_moment(const Moment& moment) {
  if (moment.kind == Moment::Kind::shared) {
    const auto device = static_cast<DeviceId>(moment.owner);
    if (moment.generation == devices_[device].generation) end_shared(device);
    return;
  }
  if (moment.kind == Moment::Kind::kernel) {
    auto& running = devices_[streams_[moment.owner].device].running;
    std::erase_if(running,
                  [&](const RunningKernel& kernel) { return kernel.sequence == moment.sequence; });
    ended_.push_back({moment.owner, moment.sequence});
    return;
  }
  const Queued& queued = streams_[moment.owner].queue.front();
  flows_.push_back({moment.owner, moment.sequence, queued.work, 0, now(), never});
  flow_routes_.push_back(queued.route);
  flow_limits_.push_back(queued.limit);
  flows_changed_ = true;
}

// Ends the device's kernels that have got all their work, but for the rounding to nanoseconds.
void VirtualBackend::end_shared(DeviceId id) {
  DeviceState& device = devices_[id];
  advance_device(id);
  std::erase_if(device.running, [&](const RunningKernel& kernel) {
    if (kernel.left > 1e-3) return false;
    ended_.push_back({kernel.stream, kernel.sequence});
    return true;
  });
  schedule_device(id);
}

void VirtualBackend::finish(StreamId id) {
  Stream& stream = streams_[id];
  const Queued queued = stream.queue.pop();
  stream.busy = false;
  ++stream.ended;
  --queued_;
  queues_.end(stream.place, kind_of(queued.operation));
  const std::exception_ptr error = queued.error ? queued.error : carry_out(queued.operation);
  completions_.push({{id, stream.ended}, stream.begin, now(), error});
  if (!stream.queue.empty()) ready_.push_back(id);
  admitting_.push_back(stream.device);
  for (StreamId* link = &stream.first_waiter; *link != no_stream;) {
    Stream& waiter = streams_[*link];
    if (waiter.awaited > stream.ended) {
      link = &waiter.next_waiter;
      continue;
    }
    ready_.push_back(*link);
    *link = waiter.next_waiter;
  }
}

std::exception_ptr VirtualBackend::carry_out(const Operation& operation) {
  if (!options_.compute) return nullptr;
  try {
    if (const Copy* copy = std::get_if<Copy>(&operation)) move_bytes(*copy);
    if (const Launch* launch = std::get_if<Launch>(&operation)) run_kernel(*launch);
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

void VirtualBackend::run_kernel(const Launch& launch) {
  if (options_.protect) {
    run_guarded(launch, memories_);
  } else {
    (*launch.kernel)(launch.arguments);
  }
}

}  // namespace quadriga
