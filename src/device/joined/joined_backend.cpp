// SPDX-License-Identifier: BSD-3-Clause
// src/device/joined/joined_backend.cpp: maps devices, spaces, streams and events, and waits between
// parts.
//
// Invariants
//   1. An operation has the same ticket here and in its part: all of a stream are queued there in
//      order. What a part refuses to queue is replaced by a kernel that throws what the part threw.
//   2. A stream's wait for an event of its own part is queued there once the event was made there,
//      a wait for one of another part is over once that operation was taken from its part. What
//      can't be queued yet is parked by `queueing_`, by device.
//   3. The driver alone takes from parts, and uses `completions_` and `last_end_`; counts of
//      streams are atomic.
//   4. The driver sleeps in one part, the `sleeper_`: the first that tells nobody when something
//      ends. It says so before it looks for the last time, first at the sleeper (a look forgets
//      what woke it), then at what is parked and at the others. A part that tells wakes the sleeper
//      if the driver sleeps, and so does who parks something. Other silent parts are looked at by
//      the clock while anything of theirs is in flight.
//   5. Parts whose threads tell are destroyed before the sleeper.
#include "device/joined/joined_backend.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <mutex>

#include "device/growing.h"
#include "device/operation.h"
#include "device/queueing.h"
#include "device/ring.h"

namespace quadriga {
namespace {

// Between two looks at silent parts.
constexpr Nanoseconds pause = 25'000;

class JoinedBackend final : public Backend {
 public:
  JoinedBackend(Machine machine, std::vector<JoinedPart> parts);
  ~JoinedBackend() override;

  std::byte* allocate(DeviceId device, std::size_t bytes) override {
    checked_device(machine_, device);
    return part_of(device).backend->allocate(inner(device), bytes);
  }
  void deallocate(DeviceId device, std::byte* memory) noexcept override {
    if (device < machine_.devices.size())
      part_of(device).backend->deallocate(inner(device), memory);
  }
  std::optional<std::size_t> free_bytes(DeviceId device) const override {
    return part_of(device).backend->free_bytes(inner(device));
  }
  MemoryExport export_memory(DeviceId device, const void* memory) const override {
    return part_of(device).backend->export_memory(inner(device), memory);
  }
  std::uint64_t allocation_at(DeviceId device, const void* memory) const override {
    return part_of(device).backend->allocation_at(inner(device), memory);
  }
  std::byte* import_memory(DeviceId device, const MemoryHandle& handle, int file) override {
    return part_of(device).backend->import_memory(inner(device), handle, file);
  }
  void close_memory(DeviceId device, std::byte* mapped) noexcept override {
    part_of(device).backend->close_memory(inner(device), mapped);
  }
  StreamId create_stream(DeviceId device, StreamKind kind) override;
  void prepare(StreamId id, const Kernel& variant) override {
    check_stream(id, table_.size());
    parts_[table_[id].part].backend->prepare(table_[id].inner, variant);
  }
  Event copy(StreamId stream, const Copy& copy) override;
  Event launch(StreamId stream, const Launch& launch) override;
  void wait(StreamId stream, Event event) override;
  std::size_t next_completion(std::span<Completion> out, Nanoseconds deadline) override;
  void wake() noexcept override {
    woken_ = true;
    parts_[sleeper_].backend->wake();
  }
  Nanoseconds now() const noexcept override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start_).count();
  }
  bool is_virtual() const noexcept override { return false; }
  void on_full(std::function<bool(DeviceId)> make_room) override {
    for (Child& child : parts_)
      child.backend->on_full(
          [&child, make_room](DeviceId inner) { return make_room(child.devices[inner]); });
  }
  DeviceId holder(const void* memory) const override;
  void synchronize(DeviceId device, std::uintptr_t stream) const override {
    part_of(device).backend->synchronize(inner(device), stream);
  }
  std::unique_ptr<ForeignEvent> mark(DeviceId device, std::uintptr_t stream) const override {
    return part_of(device).backend->mark(inner(device), stream);
  }
  bool lead(DeviceId device, void* stream, std::uintptr_t other) const override {
    return part_of(device).backend->lead(inner(device), stream, other);
  }
  bool pin(std::byte* memory, std::size_t bytes) override;
  void unpin(std::byte* memory, std::size_t bytes) noexcept override;
  const Machine& machine() const noexcept override { return machine_; }

 private:
  using Clock = std::chrono::steady_clock;

  struct Child {
    std::unique_ptr<Backend> backend;
    std::vector<DeviceId> devices;
    std::vector<SpaceId> spaces;
    Growing<StreamId> outer;  // Streams, by their numbers there.
    Nanoseconds offset = 0;   // Of our clock.
    bool tells = false;
    std::atomic<std::uint64_t> in_flight{0};
  };
  struct Place {
    std::size_t part = 0;
    DeviceId inner = 0;
  };
  struct Stream {
    DeviceId device = no_device;
    std::size_t part = 0;
    StreamId inner = 0;
    std::atomic<std::uint64_t> issued{0};
    std::atomic<std::uint64_t> queued{0};  // In its part.
    std::atomic<std::uint64_t> ended{0};   // Taken from there.
  };

  Child& part_of(DeviceId device) const { return parts_[places_[device].part]; }
  DeviceId inner(DeviceId device) const { return places_[device].inner; }
  Event add(StreamId id, const Operation& operation);
  void notify(const Stream& stream);
  bool can_queue(StreamId id, const Operation& operation) const;
  void queue(StreamId id, const Operation& operation);
  void refuse(const Stream& stream, std::exception_ptr why);
  bool take(Child& child, Nanoseconds deadline);
  bool take_all();
  void sleep(Nanoseconds deadline);
  std::size_t deliver(std::span<Completion> out);

  const Machine machine_;
  const Clock::time_point start_ = Clock::now();
  std::mutex refused_mutex_;
  std::deque<Kernel> refused_;  // Guarded by refused_mutex_; they may be queued to the end.
  mutable std::deque<Child> parts_;
  std::size_t sleeper_ = 0;
  std::vector<Place> places_;  // By device.
  Growing<Stream> table_;
  Queueing queueing_;
  Ring<Completion> completions_;
  Nanoseconds last_end_ = 0;
  std::atomic<bool> woken_{false};
  std::atomic<bool> sleeping_{false};
  std::mutex pinned_mutex_;
  std::map<std::byte*, std::vector<Backend*>> pinned_;  // Guarded by pinned_mutex_.
};

JoinedBackend::JoinedBackend(Machine machine, std::vector<JoinedPart> parts)
    : machine_(std::move(machine)),
      places_(machine_.devices.size()),
      queueing_(
          machine_.devices.size(),
          [this](StreamId id, const Operation& operation) { return can_queue(id, operation); },
          [this](StreamId id, const Operation& operation) { queue(id, operation); }) {
  for (JoinedPart& each : parts) {
    require(!each.backend->is_virtual(), "backends with virtual clocks can't be joined");
    Child& child = parts_.emplace_back();
    child.backend = std::move(each.backend);
    child.devices = std::move(each.part.devices);
    child.spaces = std::move(each.part.spaces);
    child.offset = now() - child.backend->now();
    for (std::size_t i = 0; i < child.devices.size(); ++i)
      places_[child.devices[i]] = {parts_.size() - 1, static_cast<DeviceId>(i)};
    child.tells = child.backend->tell([this, number = parts_.size() - 1] {
      if (number != sleeper_ && sleeping_) parts_[sleeper_].backend->wake();
    });
  }
  const auto silent = std::ranges::find(parts_, false, &Child::tells);
  if (silent != parts_.end()) sleeper_ = static_cast<std::size_t>(silent - parts_.begin());
}

JoinedBackend::~JoinedBackend() {
  for (std::size_t i = 0; i < parts_.size(); ++i)
    if (i != sleeper_) parts_[i].backend.reset();
  parts_[sleeper_].backend.reset();
}

StreamId JoinedBackend::create_stream(DeviceId device, StreamKind kind) {
  checked_device(machine_, device);
  Child& child = part_of(device);
  const StreamId there = child.backend->create_stream(inner(device), kind);
  const auto id = static_cast<StreamId>(table_.add([&](Stream& stream) {
    stream.device = device;
    stream.part = places_[device].part;
    stream.inner = there;
  }));
  child.outer.add([id](StreamId& outer) { outer = id; });
  return id;
}

Event JoinedBackend::copy(StreamId id, const Copy& copy) {
  check_stream(id, table_.size());
  check_copy(machine_, copy, machine_.route(copy.from, copy.to));
  const std::vector<SpaceId>& spaces = parts_[table_[id].part].spaces;
  Copy there = copy;
  there.from = spaces[copy.from];
  there.to = spaces[copy.to];
  if (there.from == no_space || there.to == no_space) {
    fail(Errc::invalid_argument, fmt::format("stream {} is of another kind of device than space {}",
                                             id, there.from == no_space ? copy.from : copy.to));
  }
  return add(id, there);
}

Event JoinedBackend::launch(StreamId id, const Launch& launch) {
  check_stream(id, table_.size());
  check_launch(launch);
  return add(id, launch);
}

Event JoinedBackend::add(StreamId id, const Operation& operation) {
  Stream& stream = table_[id];
  const Event event{id, ++stream.issued};
  queueing_.add(stream.device, id, operation);
  notify(stream);
  return event;
}

void JoinedBackend::wait(StreamId id, Event event) {
  check_stream(id, table_.size());
  if (!event) return;
  check_stream(event.stream, table_.size());
  const Stream& source = table_[event.stream];
  if (event.ticket > source.issued) {
    fail(Errc::invalid_argument,
         fmt::format("stream {} has made no event {} yet", event.stream, event.ticket));
  }
  if (event.stream == id || event.ticket <= source.ended) return;
  queueing_.add(table_[id].device, id, event);
  notify(table_[id]);
}

// The driver may have looked before something was parked, or before a silent part had anything.
void JoinedBackend::notify(const Stream& stream) {
  if (!sleeping_) return;
  const bool is_silent = !parts_[stream.part].tells && stream.part != sleeper_;
  if (is_silent || queueing_.has_parked(stream.device)) parts_[sleeper_].backend->wake();
}

bool JoinedBackend::can_queue(StreamId id, const Operation& operation) const {
  const Event* const event = std::get_if<Event>(&operation);
  if (event == nullptr) return true;
  const Stream& source = table_[event->stream];
  return event->ticket <= (source.part == table_[id].part ? source.queued : source.ended);
}

void JoinedBackend::queue(StreamId id, const Operation& operation) {
  Stream& stream = table_[id];
  Child& child = parts_[stream.part];
  if (const Event* const event = std::get_if<Event>(&operation)) {
    const Stream& source = table_[event->stream];  // of another part: it has ended
    if (source.part == stream.part)
      child.backend->wait(stream.inner, {source.inner, event->ticket});
    return;
  }
  ++child.in_flight;
  try {
    if (const Copy* const copy = std::get_if<Copy>(&operation))
      child.backend->copy(stream.inner, *copy);
    else
      child.backend->launch(stream.inner, std::get<Launch>(operation));
  } catch (...) {
    refuse(stream, std::current_exception());
  }
  ++stream.queued;
}

void JoinedBackend::refuse(const Stream& stream, std::exception_ptr why) {
  Launch launch;
  launch.name = "refused";
  {
    const std::lock_guard lock(refused_mutex_);
    launch.kernel =
        &refused_.emplace_back([why](const Arguments&) { std::rethrow_exception(why); });
  }
  parts_[stream.part].backend->launch(stream.inner, launch);
}

// True if something has ended there.
bool JoinedBackend::take(Child& child, Nanoseconds deadline) {
  std::array<Completion, 16> some;
  bool any = false;
  std::size_t count = some.size();
  const Nanoseconds theirs = deadline >= never / 2 ? deadline : deadline - child.offset;
  for (bool first = true; count == some.size(); first = false) {
    count = child.backend->next_completion(some, first ? theirs : 0);
    for (Completion& completion : std::span(some).first(count)) {
      completion.event.stream = child.outer[completion.event.stream];
      // What another part ended in the meantime was taken before.
      completion.end = last_end_ = std::max(last_end_, completion.end + child.offset);
      completion.begin = std::min(completion.begin + child.offset, completion.end);
      table_[completion.event.stream].ended = completion.event.ticket;
      completions_.push(std::move(completion));
    }
    child.in_flight -= count;
    any |= count > 0;
  }
  return any;
}

bool JoinedBackend::take_all() {
  bool any = false;
  for (Child& child : parts_) any |= take(child, 0);
  return any;
}

std::size_t JoinedBackend::next_completion(std::span<Completion> out, Nanoseconds deadline) {
  while (true) {
    queueing_.look();
    if (take_all()) queueing_.look();
    if (!completions_.empty()) return deliver(out);
    if (woken_.exchange(false) || now() >= deadline) return 0;
    sleep(deadline);
  }
}

void JoinedBackend::sleep(Nanoseconds deadline) {
  sleeping_ = true;
  // A look at the sleeper forgets what rang there, so it comes before the looks at what may ring.
  bool any = take(parts_[sleeper_], 0);
  bool by_the_clock = queueing_.look();
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (i == sleeper_) continue;
    any |= take(parts_[i], 0);
    by_the_clock |= !parts_[i].tells && parts_[i].in_flight > 0;
  }
  const Nanoseconds until = by_the_clock ? std::min(deadline, now() + pause) : deadline;
  if (!any && !woken_) take(parts_[sleeper_], until);
  sleeping_ = false;
}

std::size_t JoinedBackend::deliver(std::span<Completion> out) {
  woken_.exchange(false);  // It reads what woke it, so that the caller sees what that was for.
  std::size_t count = 0;
  while (count < out.size() && !completions_.empty()) out[count++] = completions_.pop();
  return count;
}

DeviceId JoinedBackend::holder(const void* memory) const {
  for (const Child& child : parts_) {
    const DeviceId device = child.backend->holder(memory);
    if (device != no_device) return child.devices[device];
  }
  return no_device;
}

bool JoinedBackend::pin(std::byte* memory, std::size_t bytes) {
  std::vector<Backend*> by;
  for (const Child& child : parts_)
    if (child.backend->pin(memory, bytes)) by.push_back(child.backend.get());
  if (by.empty()) return false;
  const std::lock_guard lock(pinned_mutex_);
  pinned_[memory] = std::move(by);
  return true;
}

void JoinedBackend::unpin(std::byte* memory, std::size_t bytes) noexcept {
  const std::lock_guard lock(pinned_mutex_);
  const auto found = pinned_.find(memory);
  if (found == pinned_.end()) return;
  for (Backend* const backend : found->second) backend->unpin(memory, bytes);
  pinned_.erase(found);
}

}  // namespace

std::unique_ptr<Backend> join_backends(Machine machine, std::vector<JoinedPart> parts) {
  require(!parts.empty(), "a machine without parts can't run anything");
  return std::make_unique<JoinedBackend>(std::move(machine), std::move(parts));
}

}  // namespace quadriga
