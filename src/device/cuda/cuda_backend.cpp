// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/cuda_backend.cpp: the backend contract on CUDA devices.
//
// Invariants
//   1. Who queues on a device's streams has its mutex in `queueing_`: the device's issuer, the
//      driver, or the thread of its calls.
//   2. The driver alone, which calls next_completion(), sweeps `streams_` and uses `completions_`.
//   3. A stream waits for an event of another one once that was recorded: CUDA takes a wait for an
//      event that wasn't for passed. What must wait until then is parked, as what follows a variant
//      that waits: it has its ticket, and what is queued of a stream is in the order of tickets.
//   4. A variant that waits is called by the thread of its device's `calls_`. Its operation is open
//      meanwhile and its stream held, so that nobody else touches either; the thread closes it with
//      an event behind all that the variant queued.
//   5. A variant that found too little memory has queued nothing. Who called it calls it again once
//      some was freed, which waits for no operation that isn't queued yet: its own stays open.
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
#include <utility>
#include <variant>

#include "base/config.h"
#include "base/pause.h"
#include "device/alarm.h"
#include "device/call_thread.h"
#include "device/cuda/copies.h"
#include "device/cuda/cuda_check.h"
#include "device/cuda/cuda_memory.h"
#include "device/cuda/foreign.h"
#include "device/cuda/piece_buffers.h"
#include "device/cuda/queue_variant.h"
#include "device/cuda/shared_memory.h"
#include "device/cuda/staging_buffers.h"
#include "device/cuda/stream_table.h"
#include "device/device_full.h"
#include "device/growing.h"
#include "device/operation.h"
#include "device/queueing.h"
#include "device/ring.h"

namespace quadriga {
namespace {

using cuda::check;
using cuda::DeviceGuard;

// How long the driver asks without a pause, and how long its pauses are. Two tasks a stream are
// queued ahead, so that kernels of 100 us and more hide a pause.
constexpr Nanoseconds patience = 100'000;
constexpr Nanoseconds pause = 25'000;
// Between two questions, each of which takes CUDA's lock for about as long.
constexpr Nanoseconds breath = 2'000;

bool is_full(const std::exception_ptr& error) {
  if (!error) return false;
  try {
    std::rethrow_exception(error);
  } catch (const DeviceFull&) {
    return true;
  } catch (...) {
    return false;
  }
}

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(Machine machine)
      : machine_(std::move(machine)),
        ordinals_(cuda::ordinals_of(machine_)),
        staging_(cuda::make_staging(machine_)),
        streams_(ordinals_, [this](DeviceId device,
                                   cudaStream_t stream) { staging_[device]->abandon(stream); }),
        queueing_(
            machine_.devices.size(),
            [this](StreamId, const Operation& operation) { return can_queue(operation); },
            [this](StreamId id, const Operation& operation) { queue(id, operation); }),
        calls_(machine_.devices.size()),
        memory_(ordinals_, Config::global().flag("cuda_pool")),
        device_at_(static_cast<std::size_t>(machine_.spaces()), no_device) {
    for (DeviceId device = 0; device < machine_.devices.size(); ++device)
      device_at_[machine_.devices[device].space] = device;
    cuda::enable_peer_access(ordinals_);
  }
  ~CudaBackend() override;

  std::byte* allocate(DeviceId device, std::size_t bytes) override;
  void deallocate(DeviceId device, std::byte* memory) noexcept override;
  std::optional<std::size_t> free_bytes(DeviceId device) const override;
  MemoryExport export_memory(DeviceId device, const void* memory) const override {
    checked_device(machine_, device);
    return shared_.share(ordinals_[device], memory);
  }
  std::uint64_t allocation_at(DeviceId device, const void* memory) const override {
    checked_device(machine_, device);
    return cuda::SharedMemory::buffer_id(ordinals_[device], memory);
  }
  std::byte* import_memory(DeviceId device, const MemoryHandle& handle, int file) override {
    checked_device(machine_, device);
    return shared_.open(ordinals_[device], handle, file);
  }
  void close_memory(DeviceId device, std::byte* mapped) noexcept override {
    if (device < machine_.devices.size()) shared_.close(ordinals_[device], mapped);
  }
  StreamId create_stream(DeviceId device, StreamKind kind) override;
  void prepare(StreamId id, const Kernel& variant) override;
  Event copy(StreamId stream, const Copy& copy) override;
  Event launch(StreamId stream, const Launch& launch) override;
  void wait(StreamId stream, Event event) override;
  std::size_t next_completion(std::span<Completion> out, Nanoseconds deadline) override;
  void wake() noexcept override {
    woken_.store(true);
    alarm_.ring();
  }
  Nanoseconds now() const noexcept override { return alarm_.now(); }
  bool is_virtual() const noexcept override { return false; }
  void on_full(std::function<bool(DeviceId)> make_room) override {
    make_room_ = std::move(make_room);
  }
  DeviceId holder(const void* memory) const override;
  void synchronize(DeviceId device, std::uintptr_t stream) const override {
    cuda::synchronize(ordinals_[device], stream);
  }
  std::unique_ptr<ForeignEvent> mark(DeviceId device, std::uintptr_t stream) const override {
    return cuda::mark(ordinals_[device], stream);
  }
  bool lead(DeviceId device, void* stream, std::uintptr_t other) const override {
    return cuda::lead(ordinals_[device], stream, other);
  }
  bool pin(std::byte* memory, std::size_t bytes) override;
  void unpin(std::byte* memory, std::size_t bytes) noexcept override;
  const Machine& machine() const noexcept override { return machine_; }

 private:
  struct Stream {
    DeviceId device = no_device;
    std::atomic<std::uint64_t> issued{0};  // Those that are parked included.
    cuda::PieceBuffer pieces;
  };

  void add(StreamId id, const Operation& operation);
  void queue(StreamId id, const Operation& operation);
  bool can_queue(const Operation& operation) const;
  void call(StreamId id, const Launch& launch);
  std::exception_ptr call_variant(StreamId id, const Launch& launch);
  std::exception_ptr try_variant(StreamId id, const Launch& launch);
  void close_call(StreamId id, std::exception_ptr error);
  void notify();
  void sleep(Nanoseconds deadline);
  void breathe(Nanoseconds until) const;
  DeviceId partner_of(StreamId id, const Operation& operation) const;
  void queue_pieces(std::uint32_t stream, cuda::StreamTable::Queued& queued, const Copy& copy);
  void queue_copy(std::uint32_t stream, cuda::StreamTable::Queued& queued, const Copy& copy);
  std::size_t deliver(std::span<Completion> out);

  const Machine machine_;
  const std::vector<int> ordinals_;  // By device.
  Alarm alarm_;
  const std::vector<std::shared_ptr<cuda::StagingBuffers>> staging_;  // By device.
  cuda::StreamTable streams_;
  Queueing queueing_;
  std::function<bool(DeviceId)> make_room_;
  std::deque<CallThread> calls_;  // By device.
  cuda::CudaMemory memory_;
  mutable cuda::SharedMemory shared_;
  std::vector<DeviceId> device_at_;  // By space.
  Growing<Stream> table_;            // By stream, as `streams_`.
  Ring<Completion> completions_;
  std::atomic<bool> woken_{false};
  std::atomic<bool> sleeping_{false};
};

CudaBackend::~CudaBackend() {
  calls_.clear();  // their threads end before what they use goes
  streams_.synchronize();
  for (Stream& stream : table_) stream.pieces.release(streams_.lost(stream.device));
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

std::optional<std::size_t> CudaBackend::free_bytes(DeviceId device) const {
  checked_device(machine_, device);
  const DeviceGuard guard(ordinals_[device]);
  return cuda::free_bytes(ordinals_[device], memory_.pooled());
}

StreamId CudaBackend::create_stream(DeviceId device, StreamKind kind) {
  checked_device(machine_, device);
  streams_.create(device, kind);
  return static_cast<StreamId>(table_.add([device](Stream& stream) { stream.device = device; }));
}

void CudaBackend::prepare(StreamId id, const Kernel& variant) {
  check_stream(id, table_.size());
  const DeviceGuard guard(ordinals_[table_[id].device]);
  Arguments arguments;
  arguments.stream = streams_.native(id);
  variant(arguments);
}

Event CudaBackend::copy(StreamId id, const Copy& copy) {
  check_stream(id, table_.size());
  check_copy(machine_, copy, machine_.route(copy.from, copy.to));
  const Event event{id, ++table_[id].issued};
  add(id, copy);
  return event;
}

void CudaBackend::add(StreamId id, const Operation& operation) {
  queueing_.add(table_[id].device, id, operation);
  notify();
}

void CudaBackend::notify() {
  if (sleeping_) alarm_.ring();
}

// A buffer is small beside the device's memory, and slices as long as links take a millisecond for.
void CudaBackend::queue_pieces(std::uint32_t stream, cuda::StreamTable::Queued& queued,
                               const Copy& copy) {
  constexpr std::size_t slice = std::size_t{64} << 20;
  constexpr std::size_t a_small_part = 64;
  const DeviceId device = table_[stream].device;
  table_[stream].pieces.queue(copy, ordinals_[device], queued.native,
                              std::min(slice, machine_.devices[device].memory_bytes / a_small_part),
                              [&](const Copy& part) { queue_copy(stream, queued, part); });
}

void CudaBackend::queue_copy(std::uint32_t stream, cuda::StreamTable::Queued& queued,
                             const Copy& copy) {
  if (bytes_of(copy) == 0) return;
  if (copy.pieces) return queue_pieces(stream, queued, copy);
  // What the runtime copies from pageable memory when it is called, not in the stream's order.
  constexpr std::size_t copied_at_once = std::size_t{64} << 10;
  const bool out = copy.to == host_space;
  const bool settled = out || streams_.host_is_settled(stream);
  const auto staging = [&]() -> cuda::StagingBuffers& {
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
  const Event event{id, ++table_[id].issued};
  add(id, launch);
  return event;
}

void CudaBackend::queue(StreamId id, const Operation& operation) {
  if (const Event* const event = std::get_if<Event>(&operation))
    return streams_.wait(id, event->stream, event->ticket);
  const Launch* const launch = std::get_if<Launch>(&operation);
  if (launch != nullptr && launch->waits) return call(id, *launch);
  cuda::StreamTable::Queued& queued = streams_.begin(
      id, now(), launch ? launch->name : std::string_view{}, partner_of(id, operation));
  if (!queued.error && launch != nullptr) {
    queued.error = call_variant(id, *launch);
  } else if (!queued.error) {
    try {
      const cuda::CallDevice device(ordinals_[table_[id].device]);
      queue_copy(id, queued, std::get<Copy>(operation));
    } catch (...) {
      queued.error = std::current_exception();
    }
  }
  streams_.end(id);
}

// The other device of a copy between two.
DeviceId CudaBackend::partner_of(StreamId id, const Operation& operation) const {
  const Copy* const copy = std::get_if<Copy>(&operation);
  if (copy == nullptr) return no_device;
  for (const SpaceId space : {copy->from, copy->to})
    if (space != host_space && device_at_[space] != table_[id].device) return device_at_[space];
  return no_device;
}

bool CudaBackend::can_queue(const Operation& operation) const {
  const Event* const event = std::get_if<Event>(&operation);
  return event == nullptr || event->ticket <= streams_.issued(event->stream);
}

void CudaBackend::call(StreamId id, const Launch& launch) {
  streams_.cover(id);
  cuda::StreamTable::Queued& queued = streams_.begin(id, now(), launch.name);
  if (queued.error) {
    streams_.end(id);
    return;
  }
  const DeviceId device = table_[id].device;
  queueing_.hold(device, id);
  calls_[device].add([this, id, launch] { close_call(id, call_variant(id, launch)); });
}

// As often as there is more memory for it. Returns what it threw.
std::exception_ptr CudaBackend::call_variant(StreamId id, const Launch& launch) {
  const DeviceId device = table_[id].device;
  std::exception_ptr error = try_variant(id, launch);
  while (is_full(error) && make_room_ && make_room_(device)) error = try_variant(id, launch);
  return error;
}

std::exception_ptr CudaBackend::try_variant(StreamId id, const Launch& launch) {
  cuda::StreamTable::Queued& queued = streams_.open(id);
  queued.on_end = nullptr;
  try {
    const cuda::CallDevice device(ordinals_[table_[id].device]);
    cuda::queue_variant(launch, queued.native, queued.on_end);
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

// The variant has queued what it had to, or failed.
void CudaBackend::close_call(StreamId id, std::exception_ptr error) {
  queueing_.with(table_[id].device, [&](Parking& parking) {
    cuda::StreamTable::Queued& queued = streams_.open(id);
    if (!queued.error) queued.error = std::move(error);
    streams_.end(id);
    parking.release(id);
  });
  notify();
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
  if (event.stream == id || event.ticket <= streams_.ended(event.stream)) return;
  add(id, event);
}

std::size_t CudaBackend::next_completion(std::span<Completion> out, Nanoseconds deadline) {
  // Pauses are shorter than the usual slack of 50 us.
  thread_local const int slack = ::prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
  static_cast<void>(slack);
  Nanoseconds impatient = -1;
  while (true) {
    const bool busy = queueing_.look();
    const Nanoseconds time = now();
    streams_.sweep(time, completions_);
    if (!completions_.empty()) return deliver(out);
    if (woken_.exchange(false) || time >= deadline) return 0;
    if (streams_.idle() && !busy) {
      sleep(deadline);
      continue;
    }
    if (impatient < 0) impatient = time + patience;
    if (time >= impatient)
      alarm_.sleep_until(std::min(deadline, time + pause));
    else if (streams_.asks())
      breathe(time + breath);
  }
}

void CudaBackend::breathe(Nanoseconds until) const {
  while (now() < until && !woken_.load(std::memory_order_relaxed)) pause_briefly();
}

// Until something is queued.
void CudaBackend::sleep(Nanoseconds deadline) {
  sleeping_ = true;
  const bool busy = queueing_.look();
  if (streams_.idle() && !busy) alarm_.sleep_until(deadline);
  sleeping_ = false;
}

std::size_t CudaBackend::deliver(std::span<Completion> out) {
  woken_.exchange(false);  // It reads what woke it, so that the caller sees what that was for.
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
    require(device.kind == DeviceKind::cuda, "the CUDA backend drives devices of kind cuda only");
  }
  return cuda::begin_or_refuse([&] { return std::make_unique<CudaBackend>(std::move(machine)); });
}

}  // namespace quadriga
