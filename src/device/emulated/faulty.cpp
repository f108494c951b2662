// SPDX-License-Identifier: BSD-3-Clause
// src/device/emulated/faulty.cpp: wraps a backend and makes it fail by a plan.
//
// An operation that fails is queued all the same, but empty: a copy of no bytes, a kernel that does
// nothing. So it keeps its place in its stream and its event; its error is added when its
// completion is delivered.
//
// Invariants
//   1. `mutex_` guards the counts, the random numbers and all streams' `failures`; it isn't held
//      during calls of the wrapped backend.
//   2. The failure of an operation is noted before the operation is queued, so before it is
//      delivered: streams count their operations.
#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <utility>

#include "base/random.h"
#include "device/factory.h"
#include "device/growing.h"
#include "device/operation.h"

namespace quadriga {
namespace {

bool listed(const std::vector<std::uint64_t>& numbers, std::uint64_t number) {
  return std::ranges::find(numbers, number) != numbers.end();
}

class FaultyBackend final : public Backend {
 public:
  FaultyBackend(std::unique_ptr<Backend> backend, FaultPlan plan)
      : inner_(std::move(backend)),
        plan_(std::move(plan)),
        random_(plan_.seed),
        touched_(inner_->machine().devices.size(), 0) {
    for (const FaultPlan::Loss& loss : plan_.losses) checked_device(machine(), loss.device);
  }

  std::byte* allocate(DeviceId device, std::size_t bytes) override {
    checked_device(machine(), device);
    return allocation_fails(device) ? nullptr : inner_->allocate(device, bytes);
  }
  void deallocate(DeviceId device, std::byte* memory) noexcept override {
    inner_->deallocate(device, memory);
  }
  MemoryExport export_memory(DeviceId device, const void* memory) const override {
    return inner_->export_memory(device, memory);
  }
  std::uint64_t allocation_at(DeviceId device, const void* memory) const override {
    return inner_->allocation_at(device, memory);
  }
  std::byte* import_memory(DeviceId device, const MemoryHandle& handle, int file) override {
    return inner_->import_memory(device, handle, file);
  }
  void close_memory(DeviceId device, std::byte* mapped) noexcept override {
    inner_->close_memory(device, mapped);
  }
  StreamId create_stream(DeviceId device, StreamKind kind) override {
    const StreamId id = inner_->create_stream(device, kind);
    streams_.add([device](Stream& stream) { stream.device = device; });
    return id;
  }
  Event copy(StreamId stream, const Copy& copy) override;
  Event launch(StreamId stream, const Launch& launch) override;
  void wait(StreamId stream, Event event) override { inner_->wait(stream, event); }
  std::size_t next_completion(std::span<Completion> out, Nanoseconds deadline) override;
  void wake() noexcept override { inner_->wake(); }
  bool tell(std::function<void()> ended) override { return inner_->tell(std::move(ended)); }
  Nanoseconds now() const noexcept override { return inner_->now(); }
  bool is_virtual() const noexcept override { return inner_->is_virtual(); }
  DeviceId holder(const void* memory) const override { return inner_->holder(memory); }
  void synchronize(DeviceId device, std::uintptr_t stream) const override {
    inner_->synchronize(device, stream);
  }
  std::unique_ptr<ForeignEvent> mark(DeviceId device, std::uintptr_t stream) const override {
    return inner_->mark(device, stream);
  }
  bool lead(DeviceId device, void* stream, std::uintptr_t other) const override {
    return inner_->lead(device, stream, other);
  }
  bool pin(std::byte* memory, std::size_t bytes) override { return inner_->pin(memory, bytes); }
  void unpin(std::byte* memory, std::size_t bytes) noexcept override {
    inner_->unpin(memory, bytes);
  }
  const Machine& machine() const noexcept override { return inner_->machine(); }

 private:
  struct Failure {
    std::uint64_t ticket = 0;
    std::exception_ptr error;
  };
  struct Stream {
    DeviceId device = no_device;
    std::uint64_t issued = 0;
    std::deque<Failure> failures;  // Not delivered yet, in order.
  };

  bool allocation_fails(DeviceId device) {
    const std::lock_guard lock(mutex_);
    ++allocations_;
    return listed(plan_.allocations, allocations_) ||
           random_.chance(plan_.allocation_probability) || lost(device);
  }
  bool lost(DeviceId device) const {
    return std::ranges::any_of(plan_.losses, [&](const FaultPlan::Loss& loss) {
      return loss.device == device && touched_[device] >= loss.operations;
    });
  }
  // Counts an operation for a device; the error if it is lost.
  std::exception_ptr touch(DeviceId device) {
    if (lost(device)) return error(Errc::device_lost, machine().devices[device].name + " is lost");
    ++touched_[device];
    return nullptr;
  }
  DeviceId device_of(SpaceId space) const {
    for (std::size_t i = 0; i < machine().devices.size(); ++i) {
      if (machine().devices[i].space == space) return static_cast<DeviceId>(i);
    }
    return no_device;
  }
  static std::exception_ptr error(Errc code, const std::string& message) {
    return std::make_exception_ptr(Error(code, message));
  }
  template <class Queue>
  Event queue(StreamId stream, std::exception_ptr fault, Queue&& queue);
  std::exception_ptr copy_fault(StreamId stream, const Copy& copy);
  std::exception_ptr launch_fault(StreamId stream);

  std::unique_ptr<Backend> inner_;
  FaultPlan plan_;
  std::mutex mutex_;
  Random random_;
  std::vector<std::uint64_t> touched_;  // Operations by device.
  Growing<Stream> streams_;
  std::uint64_t allocations_ = 0;
  std::uint64_t copies_ = 0;
  std::uint64_t launches_ = 0;
  const Kernel nothing_ = [](const Arguments&) {};
};

std::exception_ptr FaultyBackend::copy_fault(StreamId stream, const Copy& copy) {
  std::vector<DeviceId> devices{streams_[stream].device};
  for (const SpaceId space : {copy.from, copy.to}) {
    const DeviceId device = space == host_space ? no_device : device_of(space);
    if (device != no_device && !std::ranges::count(devices, device)) devices.push_back(device);
  }
  const std::lock_guard lock(mutex_);
  ++copies_;
  std::exception_ptr fault;
  if (listed(plan_.copies, copies_) || random_.chance(plan_.copy_probability)) {
    fault = error(Errc::io, fmt::format("injected: copy {} failed", copies_));
  }
  for (const DeviceId device : devices) {
    if (const std::exception_ptr loss = touch(device)) fault = loss;
  }
  return fault;
}

std::exception_ptr FaultyBackend::launch_fault(StreamId stream) {
  const std::lock_guard lock(mutex_);
  ++launches_;
  std::exception_ptr fault;
  if (listed(plan_.launches, launches_) || random_.chance(plan_.launch_probability))
    fault = error(Errc::task_failed, fmt::format("injected: launch {} failed", launches_));
  if (listed(plan_.refused_launches, launches_))
    fault = error(Errc::unavailable, fmt::format("injected: launch {} refused", launches_));
  if (const std::exception_ptr loss = touch(streams_[stream].device)) fault = loss;
  return fault;
}

// Queues an operation that ends with a fault, or with none.
template <class Queue>
Event FaultyBackend::queue(StreamId id, std::exception_ptr fault, Queue&& queue) {
  Stream& stream = streams_[id];
  const std::uint64_t ticket = stream.issued + 1;
  if (fault) {
    const std::lock_guard lock(mutex_);
    stream.failures.push_back({ticket, std::move(fault)});
  }
  try {
    const Event event = queue();
    stream.issued = ticket;
    return event;
  } catch (...) {  // Its arguments were refused.
    const std::lock_guard lock(mutex_);
    std::erase_if(stream.failures, [&](const Failure& each) { return each.ticket == ticket; });
    throw;
  }
}

Event FaultyBackend::copy(StreamId stream, const Copy& copy) {
  check_stream(stream, streams_.size());
  check_copy(machine(), copy, machine().route(copy.from, copy.to));
  std::exception_ptr fault = copy_fault(stream, copy);
  Copy made = copy;
  if (fault) {
    made.width_bytes = 0;
    made.height = 1;
    made.pieces.reset();
  }
  return queue(stream, std::move(fault), [&] { return inner_->copy(stream, made); });
}

Event FaultyBackend::launch(StreamId stream, const Launch& launch) {
  check_stream(stream, streams_.size());
  std::exception_ptr fault = launch_fault(stream);
  Launch made = launch;
  if (fault) made.kernel = &nothing_;
  return queue(stream, std::move(fault), [&] { return inner_->launch(stream, made); });
}

std::size_t FaultyBackend::next_completion(std::span<Completion> out, Nanoseconds deadline) {
  const std::size_t count = inner_->next_completion(out, deadline);
  const std::lock_guard lock(mutex_);
  for (Completion& completion : out.first(count)) {
    std::deque<Failure>& failures = streams_[completion.event.stream].failures;
    if (failures.empty() || failures.front().ticket != completion.event.ticket) continue;
    completion.error = std::move(failures.front().error);
    failures.pop_front();
  }
  return count;
}

}  // namespace

std::unique_ptr<Backend> make_faulty_backend(std::unique_ptr<Backend> backend, FaultPlan plan) {
  return std::make_unique<FaultyBackend>(std::move(backend), std::move(plan));
}

}  // namespace quadriga
