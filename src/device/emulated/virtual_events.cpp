// SPDX-License-Identifier: BSD-3-Clause
// src/device/emulated/virtual_events.cpp: how operations start, share what they use, and end.
//
// The time stands still while settle() starts what can start; then the next moment at which
// something ends is found, all that ends then ends, and so on.
#include <algorithm>

#include "device/emulated/guard.h"
#include "device/emulated/virtual_backend.h"

namespace quadriga {

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
      {now() + links_.latency(queued.route), queued.sequence, Moment::Kind::latency, id, 0});
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
  if (device.pending.empty() || !device.kernels.has_slot()) return;
  std::ranges::sort(device.pending, {}, [this](StreamId stream) {
    return std::pair(streams_[stream].kind != StreamKind::panel,
                     streams_[stream].queue.front().sequence);
  });
  device.kernels.advance(now());
  while (device.kernels.has_slot()) {
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
  device.kernels.begin({id, queued.sequence, queued.work, queued.speeds});
  if (device.kernels.shares()) return;
  moments_.push_back(
      {now() + whole_nanoseconds(queued.work), queued.sequence, Moment::Kind::kernel, id, 0});
  std::ranges::push_heap(moments_, Later{});
}

// An accelerator has one valid moment at a time: when the next of its kernels ends.
void VirtualBackend::schedule_device(DeviceId id) {
  DeviceState& device = devices_[id];
  if (!device.kernels.shares()) return;
  ++device.generation;
  const auto next = device.kernels.next();
  if (!next) return;
  moments_.push_back({next->end, next->sequence, Moment::Kind::shared, id, device.generation});
  std::ranges::push_heap(moments_, Later{});
}

Nanoseconds VirtualBackend::next_moment() {
  while (!moments_.empty() && moments_.front().kind == Moment::Kind::shared &&
         moments_.front().generation != devices_[moments_.front().owner].generation) {
    std::ranges::pop_heap(moments_, Later{});
    moments_.pop_back();
  }
  const Nanoseconds next = links_.next_end(now());
  return moments_.empty() ? next : std::min(next, moments_.front().time);
}

// Ends all that ends now, in order of sequence numbers.
void VirtualBackend::take_ended() {
  ended_.clear();
  links_.take_ended(now(), [&](StreamId stream, std::uint64_t sequence) {
    ended_.push_back({stream, sequence});
  });
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
    devices_[streams_[moment.owner].device].kernels.take(moment.sequence);
    ended_.push_back({moment.owner, moment.sequence});
    return;
  }
  const Queued& queued = streams_[moment.owner].queue.front();
  links_.begin(now(), moment.owner, moment.sequence, queued.route, queued.work, queued.limit);
}

// Ends the device's kernels that have got all their work, but for the rounding to nanoseconds.
void VirtualBackend::end_shared(DeviceId id) {
  DeviceState& device = devices_[id];
  device.kernels.advance(now());
  device.kernels.take_done([&](const VirtualKernels::Running& kernel) {
    ended_.push_back({kernel.stream, kernel.sequence});
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
