// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/stream_table.cpp: events of operations: recorded, waited for, asked for, reused.
#include "device/cuda/stream_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "device/cuda/cuda_check.h"
#include "device/cuda/stream_local.h"

namespace quadriga::cuda {

StreamTable::StreamTable(std::vector<int> ordinals, Abandon abandon, Nanoseconds brief)
    : ordinals_(std::move(ordinals)),
      abandon_(std::move(abandon)),
      brief_(brief),
      tells_(std::ranges::count_if(ordinals_, [](int ordinal) { return ordinal >= 0; }) > 1),
      losses_(ordinals_.size()) {
  for (const int ordinal : ordinals_) events_.emplace_back(ordinal);
}

StreamTable::~StreamTable() {
  const KeptDevice kept;
  for (Stream& stream : streams_) {
    while (!stream.queue.empty()) stream.queue.pop();
    stream.open = {};
    if (losses_.is_losing(stream.device)) continue;
    cudaSetDevice(ordinals_[stream.device]);
    close_stream_local(stream.native);
    cudaStreamDestroy(stream.native);
  }
  for (DeviceId device = 0; device < events_.size(); ++device)
    if (!losses_.is_losing(device)) events_[device].destroy_all();
  for (std::uint64_t* const block : word_blocks_) cudaFreeHost(block);
  cudaGetLastError();
}

// A fault that nobody has met yet: streams of other devices may wait for what never comes now, and
// go on once the device is set aside. So all are asked in turn, none is waited for alone.
void StreamTable::synchronize() noexcept {
  constexpr std::chrono::microseconds pause{20};
  const auto is_busy = [&](const Stream& stream) {
    if (losses_.is_losing(stream.device)) return false;
    const cudaError_t state = cudaStreamQuery(stream.native);
    if (state != cudaSuccess && state != cudaErrorNotReady)
      lose(stream.device, state, "waiting for what was queued");
    return state == cudaErrorNotReady;
  };
  while (true) {
    bool busy = false;
    for (const Stream& stream : streams_) busy |= is_busy(stream);
    if (!busy) return;
    std::this_thread::sleep_for(pause);
  }
}

std::uint32_t StreamTable::create(DeviceId device, StreamKind kind) {
  const DeviceGuard guard(ordinals_[device]);
  int least = 0;
  int greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for priorities of streams");
  const int priority = kind == StreamKind::compute ? least : greatest;
  std::uint64_t* const word = tells_ ? take_word() : nullptr;
  cudaStream_t native = nullptr;
  check(cudaStreamCreateWithPriority(&native, cudaStreamNonBlocking, priority),
        "creating a stream");
  open_stream_local(native);
  return static_cast<std::uint32_t>(streams_.add([&](Stream& stream) {
    stream.device = device;
    stream.native = native;
    stream.word = word;
  }));
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

// None, and the device is lost, where none can be had.
HeldEvent StreamTable::take_event(DeviceId device) {
  cudaError_t error = cudaSuccess;
  HeldEvent event(events_[device].take(error));
  if (error != cudaSuccess) lose(device, error, "creating an event");
  return event;
}

StreamTable::Queued& StreamTable::begin(std::uint32_t id, Nanoseconds now, std::string_view kernel,
                                        DeviceId partner) {
  Stream& stream = streams_[id];
  if (!stream.word) stream.turn.take();
  if (!stream.open.event && !losses_.is_losing(stream.device))
    stream.open.event = take_event(stream.device);
  stream.open.issued = now;
  Queued& queued = stream.open.queued;
  queued.native = stream.native;
  queued.partner = partner;
  queued.error = losses_.of(stream.device, partner);
  const std::lock_guard lock(stream.mutex);
  queued.kernel = kernel;
  return queued;
}

// An event costs a fifth of what queueing a tiny kernel does.
bool StreamTable::needs_event(const Stream& stream) {
  constexpr std::size_t most = 15;
  const Queued& queued = stream.open.queued;
  return !stream.brief || stream.word || queued.kernel.empty() || queued.gate || stream.gates > 0 ||
         stream.uncovered() >= most;
}

std::uint64_t StreamTable::end(std::uint32_t id) {
  Stream& stream = streams_[id];
  const std::uint64_t ticket = stream.issued + 1;
  const bool works = !losses_.is_losing(stream.device);
  const bool records = works && needs_event(stream);
  HeldEvent spare;
  if (records) {
    cudaError_t error = cudaEventRecord(stream.open.event.native(), stream.native);
    // After the event, which is used again once the word is there.
    if (error == cudaSuccess && stream.word)
      error = try_queue_open(stream.native, {stream.word, ticket});
    if (error != cudaSuccess) {
      lose(stream.device, error, "recording an event");
      // It says more than what queueing met.
      stream.open.queued.error = losses_.of(stream.device, no_device);
    }
  } else {
    spare = std::move(stream.open.event);
  }
  stream.open.awaited = std::exchange(stream.awaited_next, 0);
  if (stream.open.queued.gate) stream.last_gate = stream.open.queued.gate;
  {
    const std::lock_guard lock(stream.mutex);
    if (stream.open.queued.gate) ++stream.gates;
    stream.queue.push(std::exchange(stream.open, InFlight{}));
    if (records || !works) stream.covered = ticket;
    stream.issued = ticket;
  }
  stream.open.event = std::move(spare);
  if (!stream.word) stream.turn.give_back();
  return ticket;
}

void StreamTable::cover(std::uint32_t id) { cover(streams_[id]); }

void StreamTable::cover(Stream& stream) {
  if (stream.uncovered() == 0) return;
  stream.turn.take();
  cover_in_turn(stream);
  stream.turn.give_back();
}

void StreamTable::cover_in_turn(Stream& stream) {
  if (stream.uncovered() == 0 || losses_.is_losing(stream.device)) return;
  HeldEvent event = take_event(stream.device);
  if (!event) return;
  const cudaError_t error = cudaEventRecord(event.native(), stream.native);
  if (error != cudaSuccess) lose(stream.device, error, "recording an event");
  const std::lock_guard lock(stream.mutex);
  if (!stream.queue.empty())  // else all have ended with their device
    stream.queue.at(stream.queue.size() - 1).event = std::move(event);
  stream.covered = stream.issued.load();
}

// The first operation from a position on that has an event; the event is null if none has.
StreamTable::Mark StreamTable::mark_from(const Stream& stream, std::size_t position) {
  const std::lock_guard lock(stream.mutex);
  while (position < stream.queue.size() && !stream.queue.at(position).event) ++position;
  if (position == stream.queue.size()) return {position, nullptr, {}};
  const InFlight& found = stream.queue.at(position);
  return {position, found.event.native(), found.queued.gate};
}

// Behind the last operation of a range that has an event; `first` if none has.
std::size_t StreamTable::last_mark(const Stream& stream, std::size_t first, std::size_t last) {
  const std::lock_guard lock(stream.mutex);
  while (last > first && !stream.queue.at(last - 1).event) --last;
  return last;
}

void StreamTable::wait(std::uint32_t id, std::uint32_t source_id, std::uint64_t ticket) {
  Stream& stream = streams_[id];
  Stream& source = streams_[source_id];
  if (id == source_id || ticket <= source.ended) return;
  if (stream.waited.size() <= source_id) stream.waited.resize(source_id + 1, 0);
  if (stream.waited[source_id] >= ticket) return;
  stream.waited[source_id] = ticket;
  leave_lost_device();
  if (ticket > source.covered) cover(source);
  HeldEvent event;  // Else another operation might record it meanwhile.
  Gate gate;
  {
    const std::lock_guard lock(source.mutex);
    if (ticket <= source.ended) return;
    std::size_t position = ticket - source.ended - 1;
    while (position < source.queue.size() && !source.queue.at(position).event) ++position;
    if (position < source.queue.size()) {
      event = source.queue.at(position).event;
      gate = source.queue.at(position).queued.gate;
    }
  }
  if (event && !losses_.is_losing(stream.device) && !losses_.is_losing(source.device)) {
    cudaError_t error = cudaStreamWaitEvent(stream.native, event.native(), 0);
    if (error == cudaSuccess && !gate.is_open()) error = try_queue_wait(stream.native, gate);
    if (error != cudaSuccess)  // of either device
      lose(answers(source) ? stream.device : source.device, error, "waiting for an event");
  }
  const std::lock_guard lock(stream.mutex);
  stream.awaited.push({source_id, ticket});
  ++stream.awaited_next;
}

bool StreamTable::host_is_settled(std::uint32_t id) const {
  const Stream& stream = streams_[id];
  const std::lock_guard lock(stream.mutex);
  return stream.awaited.empty() && stream.gates == 0;
}

void StreamTable::wait_for_gates(std::uint32_t id) {
  const Stream& stream = streams_[id];
  if (!losses_.is_losing(stream.device) && !stream.last_gate.is_open())
    queue_wait(stream.native, stream.last_gate);
}

bool StreamTable::idle() const noexcept {
  for (const Stream& stream : streams_)
    if (stream.in_flight() > 0) return false;
  return true;
}

// The front can't have ended if what it waits for is still in flight: nobody need ask for it.
bool StreamTable::front_waits(const Stream& stream) const {
  const std::lock_guard lock(stream.mutex);
  for (std::size_t i = 0; i < stream.queue.front().awaited; ++i) {
    const Awaited& awaited = stream.awaited.at(i);
    if (awaited.ticket > streams_[awaited.stream].ended) return true;
  }
  return false;
}

// The event is asked for first: the gate of what a device never did wouldn't open, either.
bool StreamTable::has_ended(const Stream& stream, const Mark& mark) {
  if (!mark.event) return false;
  const cudaError_t state = cudaEventQuery(mark.event);
  if (state == cudaErrorNotReady) return false;
  if (state == cudaSuccess) return mark.gate.is_open();
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
  const std::lock_guard lock(lose_mutex_);
  if (!losses_.is_losing(device)) {  // else another thread was quicker
    const std::string why = error_of(error, call).what() + kernels_in_flight();
    set_aside(device, why);
    for (const Stream& stream : streams_) {
      if (!is_fatal(error) || losses_.is_losing(stream.device) || answers(stream)) continue;
      set_aside(stream.device, why);
    }
  }
  leave_lost_device();
}

void StreamTable::set_aside(DeviceId device, const std::string& why) {
  losses_.begin(device, std::make_exception_ptr(Error(Errc::device_lost, why)));
  for (const Stream& stream : streams_)
    if (stream.device == device && abandon_) abandon_(device, stream.native);
  losses_.end(device);
}

// While a lost device is the thread's, calls for others may fail as well.
void StreamTable::leave_lost_device() const {
  if (!losses_.any()) return;
  for (const Stream& stream : streams_) {
    if (losses_.is_losing(stream.device)) continue;
    cudaSetDevice(ordinals_[stream.device]);
    return;
  }
}

/// Which of them it was isn't told, nor on which device.
std::string StreamTable::kernels_in_flight() const {
  constexpr std::size_t most = 8;
  std::vector<std::string> names;
  const auto add = [&](std::string_view name) {
    if (!name.empty() && names.size() < most && !std::ranges::count(names, name))
      names.emplace_back(name);
  };
  for (const Stream& stream : streams_) {
    const std::lock_guard lock(stream.mutex);
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
  const std::uint64_t issued = stream.issued;
  const std::size_t uncovered = stream.uncovered();
  const bool grows = std::exchange(stream.seen, issued) != issued;
  if (grows && uncovered > 0 && uncovered < enough && !losses_.any()) return true;
  return !stream.word && !losses_.any() && stream.gates == 0 && stream.in_flight() >= enough &&
         now - stream.last_end < brief_;
}

// Streams of several devices are too many to be asked one by one: they tell. Each is looked at for
// every operation, as other devices may pass what they waited for when it is lost.
bool StreamTable::is_silent(const Stream& stream, Nanoseconds now) const {
  constexpr Nanoseconds patience = 10'000'000;
  return stream.word && reached(stream) <= stream.ended && !losses_.is_lost(stream.device) &&
         now - std::max(stream.asked, stream.last_end) < patience;
}

std::uint64_t StreamTable::reached(const Stream& stream) {
  return std::atomic_ref(*stream.word).load(std::memory_order_acquire);
}

// A stream gets to its word only if all before it went well: it isn't asked whether that was a
// fault. After a fault it tells nothing any more, and is asked in the end.
std::size_t StreamTable::count_told(Stream& stream, Nanoseconds now) {
  if (reached(stream) > stream.ended)
    return stream.gates == 0 || mark_from(stream, 0).gate.is_open() ? 1 : 0;
  stream.asked = now;
  return has_ended(stream, mark_from(stream, 0)) ? 1 : 0;
}

// Begins with as many as had ended the last time; two or three questions mostly do.
std::size_t StreamTable::count_asked(Stream& stream) {
  const std::size_t all = stream.in_flight();
  std::size_t ended = 0;
  std::size_t open = all + 1;
  std::size_t next = std::min(stream.ended_at_once, all);
  while (ended + 1 < open) {
    const Mark mark = mark_from(stream, next - 1);
    if (mark.position < all && has_ended(stream, mark)) {
      ended = mark.position + 1;
    } else {
      open = last_mark(stream, ended, next - 1) + 1;
    }
    next = open > all ? std::min(2 * ended, all) : ended + (open - ended) / 2;
  }
  stream.ended_at_once = std::max<std::size_t>(1, ended);
  return ended;
}

std::size_t StreamTable::count_ended(Stream& stream, Nanoseconds now) {
  if (losses_.is_lost(stream.device)) return 1;
  if (stream.word) return count_told(stream, now);
  // One at a time, so that front_waits() looks at each, or because each has a gate of its own.
  if (losses_.any() || stream.gates > 0) return has_ended(stream, mark_from(stream, 0)) ? 1 : 0;
  return count_asked(stream);
}

// True if something was retired.
bool StreamTable::sweep_stream(std::uint32_t id, Nanoseconds now, Ring<Completion>& out) {
  constexpr std::size_t few = 4;
  Stream& stream = streams_[id];
  const std::uint64_t before = stream.ended;
  // An empty queue: retired as something that another one waited for.
  while (stream.in_flight() > 0 && !is_silent(stream, now) && !can_wait(stream, now) &&
         !front_waits(stream)) {
    if (stream.covered < stream.ended + few && stream.uncovered() > 0 && stream.turn.try_take()) {
      cover_in_turn(stream);
      stream.turn.give_back();
    }
    Nanoseconds since = stream.last_end;
    if (!stream.word) {
      const std::lock_guard lock(stream.mutex);
      since = std::max(since, stream.queue.front().issued);
    }
    const std::size_t count = count_ended(stream, now);
    if (count == 0) break;
    if (!stream.word) stream.brief = now - since < brief_ * static_cast<Nanoseconds>(count);
    retire(id, stream.ended + count, now, out);
    if (!tells_ && !losses_.any() && stream.gates == 0) break;
  }
  return stream.ended != before;
}

// What is retired of one stream of several devices may be what another one waits for.
void StreamTable::sweep(Nanoseconds now, Ring<Completion>& out) {
  leave_lost_device();
  bool moved = false;
  do {
    moved = false;
    for (std::uint32_t id = 0; id < streams_.size(); ++id) moved |= sweep_stream(id, now, out);
  } while (moved && tells_);
}

Nanoseconds StreamTable::end_of(const Awaited& awaited) const {
  const Stream& stream = streams_[awaited.stream];
  if (stream.ended - awaited.ticket >= stream.ends.size()) return 0;
  return stream.ends[awaited.ticket % stream.ends.size()];
}

// What the front operation waited for and isn't retired yet; else the operation leaves the queue,
// and `begin` is no earlier than what it waited for ended.
std::variant<StreamTable::Awaited, StreamTable::InFlight> StreamTable::take_front(
    Stream& stream, Nanoseconds& begin) {
  const std::lock_guard lock(stream.mutex);
  InFlight& front = stream.queue.front();
  for (; front.awaited > 0; --front.awaited, stream.awaited.pop()) {
    const Awaited& awaited = stream.awaited.front();
    if (awaited.ticket > streams_[awaited.stream].ended) return awaited;
    begin = std::max(begin, end_of(awaited));
  }
  ++stream.ended;
  if (front.queued.gate) --stream.gates;
  return stream.queue.pop();
}

void StreamTable::retire(std::uint32_t id, std::uint64_t ticket, Nanoseconds now,
                         Ring<Completion>& out) {
  Stream& stream = streams_[id];
  while (stream.ended < ticket) {
    Nanoseconds begin = stream.last_end;
    auto next = take_front(stream, begin);
    while (const Awaited* const awaited = std::get_if<Awaited>(&next)) {
      retire(awaited->stream, awaited->ticket, now, out);
      next = take_front(stream, begin);
    }
    Queued done;
    {
      InFlight front = std::get<InFlight>(std::move(next));
      begin = std::max(begin, front.issued);
      done = std::move(front.queued);
    }
    stream.last_end = stream.ends[stream.ended % stream.ends.size()] = now;
    if (!done.error) done.error = losses_.of(stream.device, done.partner);
    if (done.on_end && !done.error) {
      try {
        done.on_end();
      } catch (...) {
        done.error = std::current_exception();
      }
    }
    out.push({{id, stream.ended}, std::min(now, begin), now, std::move(done.error)});
  }
}

}  // namespace quadriga::cuda
