// SPDX-License-Identifier: BSD-3-Clause
// src/device/emulated/virtual_backend.h: a machine under a virtual clock, by discrete events.
//
// Simultaneous events happen in the order of sequence numbers, which operations get when they are
// queued; nothing depends on addresses, threads or real time. One thread calls all functions but
// wake(), now() and holder().
//
// Here are streams, their queues and what ends next. What kernels take says VirtualTimes, how those
// of a device share it VirtualKernels, how copies share links VirtualLinks.
#pragma once

#include <quadriga/machine.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <vector>

#include "device/backend.h"
#include "device/emulated/virtual_kernels.h"
#include "device/emulated/virtual_links.h"
#include "device/emulated/virtual_times.h"
#include "device/emulated_memory.h"
#include "device/factory.h"
#include "device/hardware_queues.h"
#include "device/operation.h"
#include "device/ring.h"
#include "device/route_table.h"

namespace quadriga {

class VirtualBackend final : public Backend {
 public:
  VirtualBackend(Machine machine, VirtualOptions options);

  std::byte* allocate(DeviceId device, std::size_t bytes) override;
  void deallocate(DeviceId device, std::byte* memory) noexcept override;
  StreamId create_stream(DeviceId device, StreamKind kind) override;
  Event copy(StreamId stream, const Copy& copy) override;
  Event launch(StreamId stream, const Launch& launch) override;
  void wait(StreamId stream, Event event) override;
  std::size_t next_completion(std::span<Completion> out, Nanoseconds deadline) override;
  void wake() noexcept override { woken_.store(true); }
  Nanoseconds now() const noexcept override { return now_.load(std::memory_order_relaxed); }
  bool is_virtual() const noexcept override { return true; }
  DeviceId holder(const void* memory) const override { return holder_among(memories_, memory); }
  bool pin(std::byte*, std::size_t) override { return false; }
  void unpin(std::byte*, std::size_t) noexcept override {}
  const Machine& machine() const noexcept override { return machine_; }

 private:
  static constexpr StreamId no_stream = 0xffffffff;

  struct Queued {
    Operation operation;
    std::uint64_t sequence = 0;
    double work = 0;  // Bytes of a copy, nanoseconds of a kernel; the noise is in it.
    int route = -1;
    double limit = 0;  // Bytes a second that a copy can't exceed.
    KernelSpeeds speeds = taking_turns;
    std::exception_ptr error = {};  // It can't be carried out: it ends at once with this.
  };
  struct Stream {
    DeviceId device = no_device;
    HardwareQueues::Place place;
    StreamKind kind = StreamKind::compute;
    Ring<Queued> queue;        // The front is running if `busy`.
    std::uint64_t issued = 0;  // Tickets given out.
    std::uint64_t ended = 0;   // Tickets passed.
    bool busy = false;
    Nanoseconds begin = 0;
    StreamId first_waiter = no_stream;  // Streams whose front waits for an event of this one.
    StreamId next_waiter = no_stream;
    std::uint64_t awaited = 0;  // The ticket that it waits for.
  };
  // A moment at which something ends; obsolete if its generation is no longer the owner's.
  struct Moment {
    enum class Kind : std::uint8_t { latency, kernel, shared };
    Nanoseconds time = 0;
    std::uint64_t sequence = 0;
    Kind kind = Kind::latency;
    std::uint32_t owner = 0;  // A stream, or for shared kernels a device.
    std::uint64_t generation = 0;
  };
  struct Later {
    bool operator()(const Moment& a, const Moment& b) const noexcept {
      return a.time != b.time ? a.time > b.time : a.sequence > b.sequence;
    }
  };
  struct DeviceState {
    VirtualKernels kernels;
    std::vector<StreamId> pending_copies = {};  // That wait for an engine or their turn.
    std::vector<StreamId> pending = {};         // Kernels that wait for a slot or their turn.
    std::uint64_t generation = 0;
    int memory = -1;  // Index in memories_.
  };
  struct Ended {
    StreamId stream = 0;
    std::uint64_t sequence = 0;
  };

  Event enqueue(StreamId stream, Queued queued);
  int route_index(const Copy& copy) const;

  void settle();
  void collect(StreamId stream);
  void park(StreamId stream, Event event);
  void start(StreamId stream);
  void start_copy(StreamId stream);
  void admit(DeviceId device);
  void admit_copies(DeviceState& device);
  void admit_kernels(DeviceId device);
  std::vector<StreamId>::iterator next_pending(std::vector<StreamId>& pending,
                                               HardwareQueues::Kind kind);
  void start_kernel(StreamId stream);
  void schedule_device(DeviceId device);
  Nanoseconds next_moment();
  void take_ended();
  void take_moment(const Moment& moment);
  void end_shared(DeviceId device);
  void finish(StreamId stream);
  std::exception_ptr carry_out(const Operation& operation);
  void run_kernel(const Launch& launch);
  std::size_t deliver(std::span<Completion> out);

  Machine machine_;
  VirtualOptions options_;
  VirtualTimes times_;
  VirtualLinks links_;
  HardwareQueues queues_;
  RouteTable routes_;
  std::vector<EmulatedMemory> memories_;
  std::vector<DeviceState> devices_;
  std::vector<Stream> streams_;
  std::vector<StreamId> ready_;      // Streams whose front may be able to start.
  std::vector<StreamId> starting_;   // Of those, the ones that can.
  std::vector<DeviceId> admitting_;  // Devices whose kernels or slots have changed.
  std::vector<Moment> moments_;      // A heap, the next moment first.
  std::vector<Ended> ended_;         // Scratch: what ends at this moment.
  Ring<Completion> completions_;
  std::uint64_t sequence_ = 0;
  std::uint64_t queued_ = 0;  // Operations that haven't ended.
  std::atomic<Nanoseconds> now_{0};
  std::atomic<bool> woken_{false};
};

}  // namespace quadriga
