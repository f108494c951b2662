// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/cuda_backend.cpp: the backend contract on CUDA devices, and on the host's cores
// beside them.
//
// Invariants
//   1. Streams of a device are queued on by one thread at a time, which has the mutex of its
//      `Queueing`: the device's issuer, the driver, or the thread of its calls. The driver only
//      tries to get it: it never waits for who queues, nor does anybody for another device's.
//   2. The driver alone, which calls next_completion(), sweeps `streams_` and uses `found_`,
//      `completions_` and `last_end_`. Counts of `table_` and what is shared else are atomic.
//   3. No device waits for the CPU: a device's stream that must wait for an operation of a CPU
//      stream parks its operations until that is retired, and so do streams that wait for one that
//      is parked. They have their tickets; what is queued of a stream is in their order. Who queued
//      something looks whether others of its device can follow; the driver looks at all devices.
//   4. A variant that waits is called by the thread of its device's `calls`. Its operation is open
//      meanwhile and its stream held, so that nobody else touches either; the thread closes it with
//      an event behind all that the variant queued.
//   5. A CPU stream waits for operations of a CUDA stream by way of the stream's mirror among
//      `threads_`, which follows what the sweeps retire once somebody waits: who waits says so
//      before it looks what is retired, and the driver looks whether anybody does after it retired.
//   6. The driver sleeps when nothing is in flight. It says so before it looks for the last time,
//      and who queues or parks looks whether it sleeps after that, and wakes it.
#include "device/cuda/cuda_backend.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <quadriga/error.h>
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <variant>

#include "base/config.h"
#include "device/call_thread.h"
#include "device/cuda/check.h"
#include "device/cuda/copies.h"
#include "device/cuda/device_memory.h"
#include "device/cuda/foreign.h"
#include "device/cuda/staging.h"
#include "device/cuda/stream_table.h"
#include "device/cuda/variants.h"
#include "device/growing.h"
#include "device/operation.h"
#include "device/parking.h"
#include "device/ring.h"
#include "device/stream_threads.h"

namespace quadriga {
namespace {

using cuda::check;
using cuda::DeviceGuard;

// How long the driver asks without a pause, and how long its pauses are. Two tasks a stream are
// queued ahead, so that kernels of 100 us and more hide a pause.
constexpr Nanoseconds patience = 100'000;
constexpr Nanoseconds pause = 25'000;

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(Machine machine)
      : machine_(std::move(machine)),
        ordinals_(cuda::ordinals_of(machine_)),
        threads_(machine_, cores_of(machine_), StreamThreads::Copier{}),
        staging_(cuda::make_staging(machine_)),
        streams_(ordinals_, [this](DeviceId device,
                                   cudaStream_t stream) { staging_[device]->abandon(stream); }),
        memory_(ordinals_, Config::global().flag("cuda_pool")),
        device_at_(static_cast<std::size_t>(machine_.spaces()), no_device) {
    for (DeviceId device = 0; device < machine_.devices.size(); ++device) {
      device_at_[machine_.devices[device].space] = device;
      queueing_.emplace_back(*this);
    }
    cuda::enable_peer_access(ordinals_);
  }
  ~CudaBackend() override;

  std::byte* allocate(DeviceId device, std::size_t bytes) override;
  void deallocate(DeviceId device, std::byte* memory) noexcept override;
  StreamId create_stream(DeviceId device, StreamKind kind) override;
  Event copy(StreamId stream, const Copy& copy) override;
  Event launch(StreamId stream, const Launch& launch) override;
  void wait(StreamId stream, Event event) override;
  std::size_t next_completion(std::span<Completion> out, Nanoseconds deadline) override;
  void wake() noexcept override {
    woken_.store(true);
    threads_.wake();
  }
  Nanoseconds now() const noexcept override { return threads_.now(); }
  bool is_virtual() const noexcept override { return false; }
  DeviceId holder(const void* memory) const override;
  void synchronize(DeviceId device, std::uintptr_t stream) const override {
    if (ordinals_[device] >= 0) cuda::synchronize(ordinals_[device], stream);
  }
  bool pin(std::byte* memory, std::size_t bytes) override;
  void unpin(std::byte* memory, std::size_t bytes) noexcept override;
  const Machine& machine() const noexcept override { return machine_; }

 private:
  static constexpr StreamId none = 0xffffffff;

  struct Stream {
    DeviceId device = no_device;
    bool cpu = false;
    std::uint32_t inner = 0;  // Its number in `streams_` or `threads_`.
    StreamId mirror = none;   // Among `threads_`.
    std::atomic<bool> is_mirrored{false};
    std::atomic<std::uint64_t> issued{0};
    std::atomic<std::uint64_t> ended{0};  // Retired, of a CPU stream.
  };
  struct Queueing {
    explicit Queueing(CudaBackend& backend)
        : parking([&backend](const Operation& operation) { return backend.can_queue(operation); },
                  [&backend](StreamId id, const Operation& operation) {
                    backend.queue(id, operation);
                  }) {}
    std::mutex mutex;
    Parking parking;                  // Guarded by mutex.
    std::atomic<bool> parked{false};  // Whether it isn't empty.
    CallThread calls;                 // Its thread ends before the rest goes.
  };

  static int cores_of(const Machine& machine) {
    int cores = 0;
    for (const Device& device : machine.devices)
      if (device.kind == DeviceKind::cpu) cores += std::max(1, device.compute_streams);
    return cores;
  }
  std::uint64_t ended(const Stream& stream) const {
    return stream.cpu ? stream.ended.load() : streams_.ended(stream.inner);
  }
  void add(StreamId id, const Operation& operation);
  void queue(StreamId id, const Operation& operation);
  bool can_queue(const Operation& operation) const;
  void call(StreamId id, const Launch& launch);
  void close_call(StreamId id, std::exception_ptr error);
  bool look_at_parked();
  void notify();
  void sleep(Nanoseconds deadline);
  DeviceId partner_of(StreamId id, const Operation& operation) const;
  void queue_copy(std::uint32_t stream, cuda::StreamTable::Queued& queued, const Copy& copy);
  void wait_on_cpu(const Stream& stream, StreamId source, Event event);
  void look(Nanoseconds now);
  void take_from_cpu(Nanoseconds deadline);
  std::size_t deliver(std::span<Completion> out);

  const Machine machine_;
  const std::vector<int> ordinals_;  // By device; -1: the CPU.
  StreamThreads threads_;
  const std::vector<std::shared_ptr<cuda::Staging>> staging_;  // By device; null: the CPU.
  cuda::StreamTable streams_;
  std::deque<Queueing> queueing_;  // By device.
  cuda::DeviceMemory memory_;
  std::vector<DeviceId> device_at_;  // By space.
  Growing<Stream> table_;            // By stream.
  Growing<StreamId> outer_cuda_;     // Stream by number in `streams_`.
  Growing<StreamId> outer_cpu_;      // Stream by number in `threads_`.
  Ring<Completion> found_;           // By sweeps; with numbers of `streams_`.
  Ring<Completion> completions_;
  std::atomic<std::uint64_t> cpu_in_flight_{0};
  Nanoseconds last_end_ = 0;
  std::atomic<bool> woken_{false};
  std::atomic<bool> sleeping_{false};
};

CudaBackend::~CudaBackend() {
  queueing_.clear();
  streams_.synchronize();
  for (DeviceId device = 0; device < machine_.devices.size(); ++device)
    memory_.deallocate_all(device, streams_.lost(device));
  cudaGetLastError();
}

std::byte* CudaBackend::allocate(DeviceId device, std::size_t bytes) {
  const Device& where = checked_device(machine_, device);
  if (where.space == host_space) return nullptr;
  if (bytes > where.memory_bytes - memory_.used(device) || streams_.lost(device)) return nullptr;
  return memory_.allocate(device, bytes);
}

void CudaBackend::deallocate(DeviceId device, std::byte* block) noexcept {
  if (device < machine_.devices.size()) memory_.deallocate(device, block, streams_.lost(device));
}

StreamId CudaBackend::create_stream(DeviceId device, StreamKind kind) {
  checked_device(machine_, device);
  const bool cpu = ordinals_[device] < 0;
  const std::uint32_t inner =
      cpu ? threads_.create_stream(device, kind) : streams_.create(device, kind);
  const auto id = static_cast<StreamId>(table_.add([&](Stream& stream) {
    stream.device = device;
    stream.cpu = cpu;
    stream.inner = inner;
    if (!cpu) stream.mirror = threads_.create_mirror();
  }));
  Growing<StreamId>& outer = cpu ? outer_cpu_ : outer_cuda_;
  while (outer.size() < inner) outer.add([](StreamId&) {});  // mirrors
  outer.add([id](StreamId& place) { place = id; });
  return id;
}

Event CudaBackend::copy(StreamId id, const Copy& copy) {
  check_stream(id, table_.size());
  check_copy(machine_, copy, machine_.route(copy.from, copy.to));
  require(!table_[id].cpu, "streams of the CPU copy nothing");
  const Event event{id, ++table_[id].issued};
  add(id, copy);
  return event;
}

// Nobody waits for the event before its ticket is known.
void CudaBackend::add(StreamId id, const Operation& operation) {
  Queueing& queueing = queueing_[table_[id].device];
  {
    const std::lock_guard lock(queueing.mutex);
    queueing.parking.add(id, operation);
    if (!queueing.parking.empty()) queueing.parking.look();
    queueing.parked = !queueing.parking.empty();
  }
  notify();
}

void CudaBackend::notify() {
  if (sleeping_) threads_.wake();
}

void CudaBackend::queue_copy(std::uint32_t stream, cuda::StreamTable::Queued& queued,
                             const Copy& copy) {
  if (bytes_of(copy) == 0) return;
  // What the runtime copies from pageable memory when it is called, not in the stream's order.
  constexpr std::size_t copied_at_once = std::size_t{64} << 10;
  const bool out = copy.to == host_space;
  const bool settled = out || streams_.host_is_settled(stream);
  const auto staging = [&]() -> cuda::Staging& {
    return *staging_[device_at_[out ? copy.from : copy.to]];
  };
  if (!cuda::is_pageable(copy) || (!out && settled && bytes_of(copy) <= copied_at_once)) {
    const auto ordinal = [this](SpaceId space) {
      return space == host_space ? -1 : ordinals_[device_at_[space]];
    };
    const bool shares_engine = copy.from == host_space && machine_.spaces() > 2;
    check(shares_engine
              ? cuda::queue_in_slices(copy, ordinal(copy.to), queued.native)
              : cuda::queue_copy(copy, ordinal(copy.from), ordinal(copy.to), queued.native),
          "a copy");
  } else if (out) {
    queued.gate = staging().queue_out(queued.native, copy);
  } else {
    if (!settled) streams_.wait_for_gates(stream);
    staging().queue_in(queued.native, copy, settled);
  }
}

Event CudaBackend::launch(StreamId id, const Launch& launch) {
  check_stream(id, table_.size());
  check_launch(launch);
  Stream& stream = table_[id];
  const Event event{id, ++stream.issued};
  if (!stream.cpu) {
    add(id, launch);
  } else {
    ++cpu_in_flight_;
    threads_.enqueue(stream.inner, launch);
  }
  return event;
}

void CudaBackend::queue(StreamId id, const Operation& operation) {
  const Stream& stream = table_[id];
  if (const Event* const event = std::get_if<Event>(&operation)) {
    const Stream& source = table_[event->stream];  // of the CPU: it has ended
    if (!source.cpu) streams_.wait(stream.inner, source.inner, event->ticket);
    return;
  }
  const Launch* const launch = std::get_if<Launch>(&operation);
  if (launch != nullptr && launch->waits) return call(id, *launch);
  cuda::StreamTable::Queued& queued = streams_.begin(
      stream.inner, now(), launch ? launch->name : std::string_view{}, partner_of(id, operation));
  if (!queued.error) {
    try {
      check(cudaSetDevice(ordinals_[table_[id].device]), "choosing a device");
      if (const Copy* const copy = std::get_if<Copy>(&operation))
        queue_copy(stream.inner, queued, *copy);
      else
        cuda::queue_variant(*launch, queued.native, queued.on_end);
    } catch (...) {
      queued.error = std::current_exception();
    }
  }
  streams_.end(stream.inner);
}

// The other device of a copy between two.
DeviceId CudaBackend::partner_of(StreamId id, const Operation& operation) const {
  const Copy* const copy = std::get_if<Copy>(&operation);
  if (copy == nullptr) return no_device;
  for (const SpaceId space : {copy->from, copy->to})
    if (space != host_space && device_at_[space] != table_[id].device) return device_at_[space];
  return no_device;
}

// A wait can be queued on CUDA streams only once what it waits for was queued or has ended.
bool CudaBackend::can_queue(const Operation& operation) const {
  const Event* const event = std::get_if<Event>(&operation);
  if (event == nullptr) return true;
  const Stream& source = table_[event->stream];
  return event->ticket <= (source.cpu ? source.ended.load() : streams_.issued(source.inner));
}

void CudaBackend::call(StreamId id, const Launch& launch) {
  const Stream& stream = table_[id];
  streams_.cover(stream.inner);
  cuda::StreamTable::Queued& queued = streams_.begin(stream.inner, now(), launch.name);
  if (queued.error) {
    streams_.end(stream.inner);
    return;
  }
  Queueing& queueing = queueing_[table_[id].device];
  queueing.parking.hold(id);
  queueing.calls.add([this, id, &queued, launch] {
    std::exception_ptr error;
    try {
      check(cudaSetDevice(ordinals_[table_[id].device]), "choosing a device");
      cuda::queue_variant(launch, queued.native, queued.on_end);
    } catch (...) {
      error = std::current_exception();
    }
    close_call(id, std::move(error));
  });
}

// The variant has queued what it had to, or failed.
void CudaBackend::close_call(StreamId id, std::exception_ptr error) {
  const std::uint32_t inner = table_[id].inner;
  Queueing& queueing = queueing_[table_[id].device];
  {
    const std::lock_guard lock(queueing.mutex);
    cuda::StreamTable::Queued& queued = streams_.open(inner);
    if (!queued.error) queued.error = std::move(error);
    streams_.end(inner);
    queueing.parking.release(id);
    queueing.parking.look();
    queueing.parked = !queueing.parking.empty();
  }
  notify();
}

// Queues what can be queued by now; true if more may be so soon, because somebody queues.
bool CudaBackend::look_at_parked() {
  bool busy = false;
  for (bool moved = true; moved;) {
    moved = busy = false;
    for (Queueing& each : queueing_) {
      if (!each.parked) continue;
      const std::unique_lock lock(each.mutex, std::try_to_lock);
      busy |= !lock.owns_lock();
      if (!lock.owns_lock() || !each.parking.look()) continue;
      each.parked = !each.parking.empty();
      moved = true;
    }
  }
  return busy;
}

void CudaBackend::wait(StreamId id, Event event) {
  check_stream(id, table_.size());
  if (!event) return;
  check_stream(event.stream, table_.size());
  const Stream& source = table_[event.stream];
  if (event.ticket > source.issued) {
    fail(Errc::invalid_argument,
         fmt::format("stream {} has made no event {} yet", event.stream, event.ticket));
  }
  if (event.stream == id || event.ticket <= ended(source)) return;
  if (table_[id].cpu) return wait_on_cpu(table_[id], event.stream, event);
  add(id, event);
}

void CudaBackend::wait_on_cpu(const Stream& stream, StreamId source_id, Event event) {
  Stream& source = table_[source_id];
  if (source.cpu) return threads_.wait(stream.inner, {source.inner, event.ticket});
  source.is_mirrored = true;
  threads_.mirror(source.mirror, source.issued, ended(source));
  threads_.wait(stream.inner, {source.mirror, event.ticket});
}

// Moves what has ended to `completions_`.
void CudaBackend::look(Nanoseconds now) {
  if (streams_.idle()) return;
  streams_.sweep(now, found_);
  if (found_.empty()) return;
  last_end_ = now;
  while (!found_.empty()) {
    Completion completion = found_.pop();
    completion.event.stream = outer_cuda_[completion.event.stream];
    completions_.push(std::move(completion));
  }
  for (const Stream& stream : table_)
    if (stream.is_mirrored) threads_.mirror(stream.mirror, stream.issued, ended(stream));
}

void CudaBackend::take_from_cpu(Nanoseconds deadline) {
  std::array<Completion, 16> some;
  const std::size_t count = threads_.next_completion(some, deadline);
  cpu_in_flight_ -= count;
  for (std::size_t i = 0; i < count; ++i) {
    Completion& completion = some[i];
    completion.event.stream = outer_cpu_[completion.event.stream];
    table_[completion.event.stream].ended = completion.event.ticket;
    // What a sweep found in the meantime was said to end when it was found.
    completion.end = last_end_ = std::max(last_end_, completion.end);
    completions_.push(std::move(completion));
  }
}

std::size_t CudaBackend::next_completion(std::span<Completion> out, Nanoseconds deadline) {
  // Pauses are shorter than the usual slack of 50 us.
  thread_local const int slack = ::prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
  static_cast<void>(slack);
  Nanoseconds impatient = -1;
  while (true) {
    if (cpu_in_flight_ > 0) take_from_cpu(0);
    const bool busy = look_at_parked();
    const Nanoseconds time = now();
    look(time);
    if (!completions_.empty()) return deliver(out);
    if (woken_.exchange(false) || time >= deadline) return 0;
    if (streams_.idle() && !busy) {
      sleep(deadline);
      continue;
    }
    if (impatient < 0) impatient = time + patience;
    if (time >= impatient) take_from_cpu(std::min(deadline, time + pause));
  }
}

// Until something is queued or ends, but for what ends on devices.
void CudaBackend::sleep(Nanoseconds deadline) {
  sleeping_ = true;
  if (streams_.idle()) take_from_cpu(deadline);
  sleeping_ = false;
}

std::size_t CudaBackend::deliver(std::span<Completion> out) {
  woken_.store(false);
  std::size_t count = 0;
  while (count < out.size() && !completions_.empty()) out[count++] = completions_.pop();
  return count;
}

DeviceId CudaBackend::holder(const void* memory) const {
  const int ordinal = cuda::ordinal_of(memory);
  if (ordinal < 0) return no_device;
  const auto found = std::ranges::find(ordinals_, ordinal);
  if (found == ordinals_.end())
    fail(Errc::invalid_argument,
         fmt::format("the memory is CUDA device {}'s, which this engine doesn't use", ordinal));
  return static_cast<DeviceId>(found - ordinals_.begin());
}

bool CudaBackend::pin(std::byte* memory, std::size_t bytes) {
  if (cudaHostRegister(memory, bytes, cudaHostRegisterPortable) == cudaSuccess) return true;
  cudaGetLastError();
  return false;
}

void CudaBackend::unpin(std::byte* memory, std::size_t) noexcept {
  if (cudaHostUnregister(memory) != cudaSuccess) cudaGetLastError();
}

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(Machine machine) {
  if (const std::string absence = cuda_absence(); !absence.empty())
    fail(Errc::unavailable, absence);
  for (const Device& device : machine.devices) {
    require(device.kind != DeviceKind::emulated, "the CUDA backend can't drive emulated devices");
  }
  return cuda::begin_or_refuse([&] { return std::make_unique<CudaBackend>(std::move(machine)); });
}

}  // namespace quadriga
