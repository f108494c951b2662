// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/stream_table.cpp: events of operations: recorded, waited for, asked for, reused.
#include "device/cuda/stream_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "device/cuda/check.h"
#include "device/cuda/stream_local.h"

namespace quadriga::cuda {

StreamTable::StreamTable(std::vector<int> ordinals, Abandon abandon, Nanoseconds brief)
    : ordinals_(std::move(ordinals)),
      abandon_(std::move(abandon)),
      brief_(brief),
      lost_(ordinals_.size()),
      events_(ordinals_.size()),
      tells_(std::ranges::count_if(ordinals_, [](int ordinal) { return ordinal >= 0; }) > 1) {}

StreamTable::~StreamTable() {
  for (Stream& stream : streams_) {
    if (lost_[stream.device]) continue;
    cudaSetDevice(ordinals_[stream.device]);
    close_stream_local(stream.native);
    while (!stream.queue.empty())
      if (const cudaEvent_t event = stream.queue.pop().event) cudaEventDestroy(event);
    if (stream.open.event) cudaEventDestroy(stream.open.event);
    cudaStreamDestroy(stream.native);
  }
  for (std::size_t device = 0; device < events_.size(); ++device) {
    if (lost_[device]) continue;
    for (const cudaEvent_t event : events_[device]) cudaEventDestroy(event);
  }
  for (std::uint64_t* const block : word_blocks_) cudaFreeHost(block);
  cudaGetLastError();
}

void StreamTable::synchronize() noexcept {
  for (const Stream& stream : streams_)
    if (!lost_[stream.device]) cudaStreamSynchronize(stream.native);
}

std::uint32_t StreamTable::create(DeviceId device, StreamKind kind) {
  const DeviceGuard guard(ordinals_[device]);
  int least = 0;
  int greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for priorities of streams");
  const int priority = kind == StreamKind::compute ? least : greatest;
  Stream stream;
  stream.device = device;
  if (tells_) stream.word = take_word();
  check(cudaStreamCreateWithPriority(&stream.native, cudaStreamNonBlocking, priority),
        "creating a stream");
  open_stream_local(stream.native);
  streams_.push_back(std::move(stream));
  return static_cast<std::uint32_t>(streams_.size() - 1);
}

// The next stream's. Each is on a line of its own: devices write them.
std::uint64_t* StreamTable::take_word() {
  constexpr std::size_t a_line = 8;
  constexpr std::size_t lines = 64;
  const std::size_t place = streams_.size() % lines;
  if (place == 0) {
    void* block = nullptr;
    constexpr std::size_t bytes = lines * a_line * sizeof(std::uint64_t);
    check(cudaHostAlloc(&block, bytes, cudaHostAllocPortable), "allocating words of streams");
    std::memset(block, 0, bytes);
    word_blocks_.push_back(static_cast<std::uint64_t*>(block));
  }
  return word_blocks_.back() + place * a_line;
}

// Null, and the device is lost, where none can be had.
cudaEvent_t StreamTable::take_event(DeviceId device) {
  std::vector<cudaEvent_t>& unused = events_[device];
  if (!unused.empty()) {
    const cudaEvent_t event = unused.back();
    unused.pop_back();
    return event;
  }
  int before = ordinals_[device];
  cudaEvent_t event = nullptr;
  cudaGetDevice(&before);  // It may be that one which is lost.
  cudaError_t error = cudaSetDevice(ordinals_[device]);
  if (error == cudaSuccess) error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  cudaSetDevice(before);
  if (error != cudaSuccess) lose(device, error, "creating an event");
  return event;
}

std::exception_ptr StreamTable::loss_of(DeviceId device, DeviceId partner) const {
  return lost_[device] || partner == no_device ? lost_[device] : lost_[partner];
}

StreamTable::Queued& StreamTable::begin(std::uint32_t id, Nanoseconds now, DeviceId partner) {
  Stream& stream = streams_[id];
  if (!stream.open.event && !lost_[stream.device]) stream.open.event = take_event(stream.device);
  stream.open.queued.native = stream.native;
  stream.open.queued.partner = partner;
  stream.open.queued.error = loss_of(stream.device, partner);
  stream.open.issued = now;
  return stream.open.queued;
}

// An event costs a fifth of what queueing a tiny kernel does.
bool StreamTable::needs_event(const Stream& stream) {
  constexpr std::size_t most = 15;
  const Queued& queued = stream.open.queued;
  return !stream.brief || stream.word || queued.kernel.empty() || queued.gate || stream.gates > 0 ||
         stream.uncovered >= most;
}

std::uint64_t StreamTable::end(std::uint32_t id) {
  Stream& stream = streams_[id];
  cudaEvent_t spare = nullptr;
  if (lost_[stream.device]) {
    stream.uncovered = 0;
  } else if (!needs_event(stream)) {
    spare = std::exchange(stream.open.event, nullptr);
    ++stream.uncovered;
  } else {
    stream.uncovered = 0;
    cudaError_t error = cudaEventRecord(stream.open.event, stream.native);
    // After the event, which is used again once the word is there.
    if (error == cudaSuccess && stream.word)
      error = try_queue_open(stream.native, {stream.word, stream.issued + 1});
    if (error != cudaSuccess) {
      lose(stream.device, error, "recording an event");
      stream.open.queued.error = lost_[stream.device];  // says more than what queueing met
    }
  }
  stream.open.awaited = std::exchange(stream.awaited_next, 0);
  if (stream.open.queued.gate) {
    ++stream.gates;
    stream.last_gate = stream.open.queued.gate;
  }
  if (stream.queue.empty()) busy_.push_back(id);
  stream.queue.push(std::exchange(stream.open, InFlight{}));
  stream.open.event = spare;
  return ++stream.issued;
}

void StreamTable::cover(std::uint32_t id) { cover(streams_[id]); }

void StreamTable::cover(Stream& stream) {
  if (stream.uncovered == 0 || lost_[stream.device]) return;
  if (!stream.open.event) stream.open.event = take_event(stream.device);
  if (lost_[stream.device]) return;
  stream.uncovered = 0;
  InFlight& last = stream.queue.at(stream.queue.size() - 1);
  last.event = std::exchange(stream.open.event, nullptr);
  const cudaError_t error = cudaEventRecord(last.event, stream.native);
  if (error != cudaSuccess) lose(stream.device, error, "recording an event");
}

// The first operation from a position on that has an event; the queue's size if none has.
std::size_t StreamTable::covering(const Stream& stream, std::size_t position) const {
  while (position < stream.queue.size() && !stream.queue.at(position).event) ++position;
  return position;
}

void StreamTable::wait(std::uint32_t id, std::uint32_t source_id, std::uint64_t ticket) {
  Stream& stream = streams_[id];
  Stream& source = streams_[source_id];
  if (id == source_id || ticket <= source.ended) return;
  if (stream.waited.size() <= source_id) stream.waited.resize(source_id + 1, 0);
  if (stream.waited[source_id] >= ticket) return;
  stream.waited[source_id] = ticket;
  if (ticket > source.issued - source.uncovered) cover(source);
  if (!lost_[stream.device] && !lost_[source.device]) {
    const InFlight& awaited = source.queue.at(covering(source, ticket - source.ended - 1));
    cudaError_t error = cudaStreamWaitEvent(stream.native, awaited.event, 0);
    if (error == cudaSuccess && !awaited.queued.gate.is_open())
      error = try_queue_wait(stream.native, awaited.queued.gate);
    if (error != cudaSuccess)  // of either device
      lose(answers(source) ? stream.device : source.device, error, "waiting for an event");
  }
  stream.awaited.push({source_id, ticket});
  ++stream.awaited_next;
}

void StreamTable::wait_for_gates(std::uint32_t id) {
  Stream& stream = streams_[id];
  if (!lost_[stream.device] && !stream.last_gate.is_open())
    queue_wait(stream.native, stream.last_gate);
}

// The front can't have ended if what it waits for is still in flight: nobody need ask for it.
bool StreamTable::front_waits(const Stream& stream) const {
  for (std::size_t i = 0; i < stream.queue.front().awaited; ++i) {
    const Awaited& awaited = stream.awaited.at(i);
    if (awaited.ticket > streams_[awaited.stream].ended) return true;
  }
  return false;
}

// The event is asked for first: the gate of what a device never did wouldn't open, either.
bool StreamTable::has_ended(Stream& stream, std::size_t position) {
  const InFlight& operation = stream.queue.at(position);
  const cudaError_t state = cudaEventQuery(operation.event);
  if (state == cudaErrorNotReady) return false;
  if (state == cudaSuccess) return operation.queued.gate.is_open();
  lose(stream.device, state, "an operation in flight");
  return false;
}

bool StreamTable::answers(const Stream& stream) {
  const cudaError_t state = cudaStreamQuery(stream.native);
  return state == cudaSuccess || state == cudaErrorNotReady;
}

/// A fault mostly holds the whole process: devices that it took along are lost at once, so that
/// nothing is tried on them.
void StreamTable::lose(DeviceId device, cudaError_t error, std::string_view call) {
  const std::string why = error_of(error, call).what() + kernels_in_flight();
  set_aside(device, why);
  for (const Stream& stream : streams_) {
    if (!is_fatal(error) || lost_[stream.device] || answers(stream)) continue;
    set_aside(stream.device, why);
  }
  // While a lost device is the thread's, calls for others may fail as well.
  const auto left = std::ranges::find_if(
      streams_, [this](const Stream& stream) { return !lost_[stream.device]; });
  if (left != streams_.end()) cudaSetDevice(ordinals_[left->device]);
}

void StreamTable::set_aside(DeviceId device, const std::string& why) {
  lost_[device] = std::make_exception_ptr(Error(Errc::device_lost, why));
  any_lost_ = true;
  for (const Stream& stream : streams_)
    if (stream.device == device && abandon_) abandon_(device, stream.native);
}

/// Which of them it was isn't told, nor on which device.
std::string StreamTable::kernels_in_flight() const {
  constexpr std::size_t most = 8;
  std::vector<std::string_view> names;
  const auto add = [&](std::string_view name) {
    if (!name.empty() && names.size() < most && !std::ranges::count(names, name))
      names.push_back(name);
  };
  for (const Stream& stream : streams_) {
    for (std::size_t i = 0; i < stream.queue.size(); ++i) add(stream.queue.at(i).queued.kernel);
    add(stream.open.queued.kernel);
  }
  return names.empty() ? "" : fmt::format("; kernels in flight: '{}'", fmt::join(names, "', '"));
}

// A question costs half of what queueing a kernel does: streams of short ones are asked for several
// at once, as long as enough are queued behind them, or some more were queued since they were
// looked at last.
bool StreamTable::can_wait(Stream& stream, Nanoseconds now) const {
  constexpr std::size_t enough = 8;
  const bool grows = std::exchange(stream.seen, stream.issued) != stream.issued;
  if (grows && stream.uncovered > 0 && stream.uncovered < enough && !any_lost_) return true;
  return !stream.word && !any_lost_ && stream.gates == 0 && stream.queue.size() >= enough &&
         now - stream.last_end < brief_;
}

// Streams of several devices are too many to be asked one by one: they tell, and are asked whether
// that was no fault. One that has told nothing for long is asked, too: after a fault none tells.
// What has ended for sure is retired one by one, so that front_waits() looks at each: other devices
// may pass what they waited for when it is lost.
std::uint64_t StreamTable::count_told(Stream& stream, Nanoseconds now) {
  constexpr Nanoseconds patience = 10'000'000;
  if (stream.sure > stream.ended) return 1;
  const std::uint64_t reached = std::atomic_ref(*stream.word).load(std::memory_order_acquire);
  std::uint64_t told = reached > stream.ended ? reached - stream.ended : 0;
  if (told == 0) {
    if (now - std::max(stream.asked, stream.last_end) < patience) return 0;
    stream.asked = now;
  }
  if (stream.gates > 0) told = 1;  // each may have a gate of its own
  told = std::clamp<std::uint64_t>(told, 1, stream.queue.size());
  if (!has_ended(stream, told - 1)) return 0;
  stream.sure = stream.ended + told;
  return 1;
}

// Begins with as many as had ended the last time; two or three questions mostly do.
std::uint64_t StreamTable::count_ended(Stream& stream, Nanoseconds now) {
  if (lost_[stream.device]) return 1;
  if (stream.word) return count_told(stream, now);
  // One at a time, so that front_waits() looks at each, or because each has a gate of its own.
  if (any_lost_ || stream.gates > 0) return has_ended(stream, covering(stream, 0)) ? 1 : 0;
  std::size_t ended = 0;
  std::size_t open = stream.queue.size() + 1;
  std::size_t next = std::min(stream.ended_at_once, stream.queue.size());
  while (ended + 1 < open) {
    const std::size_t asked = covering(stream, next - 1);
    if (asked < stream.queue.size() && has_ended(stream, asked)) {
      ended = asked + 1;
    } else {
      open = next;
      while (open > ended + 1 && !stream.queue.at(open - 2).event) --open;
    }
    const bool all_so_far = open > stream.queue.size();
    next = all_so_far ? std::min(2 * ended, stream.queue.size()) : ended + (open - ended) / 2;
  }
  stream.ended_at_once = std::max<std::size_t>(1, ended);
  return ended;
}

// True if something was retired.
bool StreamTable::sweep_stream(std::uint32_t id, Nanoseconds now, Ring<Completion>& out) {
  constexpr std::size_t few = 4;
  Stream& stream = streams_[id];
  const std::uint64_t before = stream.ended;
  // An empty queue: retired as something that another one waited for.
  while (!stream.queue.empty() && !can_wait(stream, now) && !front_waits(stream)) {
    if (stream.queue.size() - stream.uncovered < few) cover(stream);
    const Nanoseconds since = std::max(stream.last_end, stream.queue.front().issued);
    const std::uint64_t count = count_ended(stream, now);
    if (count == 0) break;
    stream.brief = now - since < brief_ * static_cast<Nanoseconds>(count);
    retire(id, stream.ended + count, now, out);
    if (!tells_ && !any_lost_ && stream.gates == 0) break;
  }
  return stream.ended != before;
}

// What is retired of one stream of several devices may be what another one waits for.
void StreamTable::sweep(Nanoseconds now, Ring<Completion>& out) {
  bool moved = false;
  do {
    moved = false;
    for (std::size_t i = 0; i < busy_.size(); ++i) moved |= sweep_stream(busy_[i], now, out);
  } while (moved && tells_);
  std::erase_if(busy_, [this](std::uint32_t id) { return streams_[id].queue.empty(); });
}

Nanoseconds StreamTable::end_of(const Awaited& awaited) const {
  const Stream& stream = streams_[awaited.stream];
  if (stream.ended - awaited.ticket >= stream.ends.size()) return 0;
  return stream.ends[awaited.ticket % stream.ends.size()];
}

void StreamTable::retire(std::uint32_t id, std::uint64_t ticket, Nanoseconds now,
                         Ring<Completion>& out) {
  Stream& stream = streams_[id];
  while (stream.ended < ticket) {
    Nanoseconds begin = stream.last_end;
    for (std::size_t left = stream.queue.front().awaited; left > 0; --left) {
      const Awaited awaited = stream.awaited.pop();
      retire(awaited.stream, awaited.ticket, now, out);
      begin = std::max(begin, end_of(awaited));
    }
    InFlight done = stream.queue.pop();
    ++stream.ended;
    if (done.queued.gate) --stream.gates;
    stream.last_end = stream.ends[stream.ended % stream.ends.size()] = now;
    if (done.event) events_[stream.device].push_back(done.event);
    if (any_lost_ && !done.queued.error)
      done.queued.error = loss_of(stream.device, done.queued.partner);
    if (done.queued.on_end && !done.queued.error) {
      try {
        done.queued.on_end();
      } catch (...) {
        done.queued.error = std::current_exception();
      }
    }
    out.push({{id, stream.ended},
              std::min(now, std::max(begin, done.issued)),
              now,
              std::move(done.queued.error)});
  }
}

}  // namespace quadriga::cuda
