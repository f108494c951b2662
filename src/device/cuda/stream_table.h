// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/stream_table.h: CUDA streams, what is in flight on them, and which of it has
// ended.
//
// Invariants
//   1. One thread uses a table. Nothing here waits for a device but synchronize().
//   2. An operation records a CUDA event, which belongs to it until it is retired. Waits that were
//      queued for the event keep what they saw, so it may be recorded anew after that. Of brief
//      kernels in a row the last one's event stands for all: those behind the last event of a
//      stream, `uncovered`, get one before anybody waits for them or asks whether they have ended.
//   3. Operations of a stream are retired in order, and after all that they waited for. On a single
//      device, that an operation has ended tells that those have, too: they are retired without
//      being asked for.
//   4. On a lost device operations end with the loss, once all that they waited for is retired. No
//      thread of the host touches what they copy from or to by then. Copies from or to its memory
//      that other devices make end with the loss as well: nobody knows what they moved.
#pragma once

#include <cuda_runtime_api.h>
#include <quadriga/machine.h>

#include <array>
#include <deque>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "device/backend.h"
#include "device/cuda/gate.h"
#include "device/ring.h"

namespace quadriga::cuda {

/// The streams of all CUDA devices of a backend; ids count from 0.
class StreamTable {
 public:
  /// Called for each stream of a device that is lost, before its operations end.
  using Abandon = std::function<void(DeviceId, cudaStream_t)>;

  /// `ordinals` are the runtime's numbers of a machine's devices, -1 for those of other kinds.
  /// Kernels that take less than `brief` share events.
  explicit StreamTable(std::vector<int> ordinals, Abandon abandon = {},
                       Nanoseconds brief = usually_brief);
  /// After synchronize().
  ~StreamTable();
  StreamTable(const StreamTable&) = delete;
  StreamTable& operator=(const StreamTable&) = delete;

  std::uint32_t create(DeviceId device, StreamKind kind);

  /// What the caller queues an operation with; end() must follow begin().
  struct Queued {
    cudaStream_t native = nullptr;
    std::function<void()> on_end;  ///< Runs when the operation is retired; may throw.
    std::exception_ptr error;      ///< What the operation shall end with.
    Gate gate;                     ///< Opens when the host's part of the operation is done, too.
    std::string_view kernel;       ///< The name of the one that it runs, if any.
    DeviceId partner = no_device;  ///< Another device whose memory it reads or writes.
  };
  /// Opens an operation of a stream. Its error is set if its device or its partner is lost: queue
  /// nothing then.
  Queued& begin(std::uint32_t stream, Nanoseconds now, DeviceId partner = no_device);
  /// Closes it, and returns its ticket.
  std::uint64_t end(std::uint32_t stream);
  /// Records an event for what has none: nobody else can while another thread queues there.
  void cover(std::uint32_t stream);

  /// Makes later operations of a stream wait for an operation of another one; free if it is
  /// retired.
  void wait(std::uint32_t stream, std::uint32_t source, std::uint64_t ticket);

  /// Retires what has ended: adds completions with ids of this table to `out`, in an order in which
  /// nothing comes before what it waited for.
  void sweep(Nanoseconds now, Ring<Completion>& out);

  /// Waits for what is queued on devices that aren't lost.
  void synchronize() noexcept;
  /// Whether nothing in flight on a stream, or waited for by it, can still write the host's memory.
  bool host_is_settled(std::uint32_t stream) const noexcept {
    return streams_[stream].awaited.empty() && streams_[stream].gates == 0;
  }
  /// Makes a stream wait for the host's part of its own operations.
  void wait_for_gates(std::uint32_t stream);
  bool idle() const noexcept { return busy_.empty(); }
  std::uint64_t issued(std::uint32_t stream) const noexcept { return streams_[stream].issued; }
  std::uint64_t ended(std::uint32_t stream) const noexcept { return streams_[stream].ended; }
  bool lost(DeviceId device) const noexcept { return lost_[device] != nullptr; }

 private:
  struct Awaited {
    std::uint32_t stream = 0;
    std::uint64_t ticket = 0;
  };
  struct InFlight {
    Queued queued;
    cudaEvent_t event = nullptr;
    Nanoseconds issued = 0;
    std::size_t awaited = 0;  // How many places of its stream's `awaited` are its own.
  };
  struct Stream {
    DeviceId device = no_device;
    cudaStream_t native = nullptr;
    Ring<InFlight> queue;
    Ring<Awaited> awaited;              // What operations in the queue wait for, in order.
    std::size_t awaited_next = 0;       // How many of them are the next operation's.
    std::vector<std::uint64_t> waited;  // By source stream: the latest ticket waited for.
    InFlight open;
    std::uint64_t issued = 0;
    std::uint64_t ended = 0;
    std::size_t gates = 0;  // Operations in flight that have one.
    Gate last_gate;
    Nanoseconds last_end = 0;
    std::size_t ended_at_once = 1;       // When the stream was asked last.
    bool brief = false;                  // What ended then took no time to speak of.
    std::size_t uncovered = 0;           // Operations at the queue's end without an event.
    std::uint64_t seen = 0;              // `issued` when the stream was looked at last.
    std::uint64_t* word = nullptr;       // In pinned memory: the ticket that the stream reached.
    std::uint64_t sure = 0;              // The ticket that it was seen to have reached.
    Nanoseconds asked = 0;               // When a stream with a word was asked last.
    std::array<Nanoseconds, 64> ends{};  // Of the latest tickets.
  };

  cudaEvent_t take_event(DeviceId device);
  std::exception_ptr loss_of(DeviceId device, DeviceId partner) const;
  bool front_waits(const Stream& stream) const;
  bool can_wait(Stream& stream, Nanoseconds now) const;
  bool sweep_stream(std::uint32_t id, Nanoseconds now, Ring<Completion>& out);
  std::uint64_t count_ended(Stream& stream, Nanoseconds now);
  std::uint64_t count_told(Stream& stream, Nanoseconds now);
  bool has_ended(Stream& stream, std::size_t position);
  static bool needs_event(const Stream& stream);
  void cover(Stream& stream);
  std::size_t covering(const Stream& stream, std::size_t position) const;
  std::uint64_t* take_word();
  void retire(std::uint32_t id, std::uint64_t ticket, Nanoseconds now, Ring<Completion>& out);
  static bool answers(const Stream& stream);
  void lose(DeviceId device, cudaError_t error, std::string_view call);
  void set_aside(DeviceId device, const std::string& why);
  std::string kernels_in_flight() const;
  Nanoseconds end_of(const Awaited& awaited) const;

  /// About what queueing a few takes.
  static constexpr Nanoseconds usually_brief = 20'000;

  std::vector<int> ordinals_;
  const Abandon abandon_;
  const Nanoseconds brief_;
  std::vector<std::exception_ptr> lost_;  // By device.
  bool any_lost_ = false;
  std::vector<std::vector<cudaEvent_t>> events_;  // Unused ones, by device.
  std::deque<Stream> streams_;
  std::vector<std::uint32_t> busy_;  // Streams with operations in flight.
  bool tells_ = false;               // Streams have words.
  std::vector<std::uint64_t*> word_blocks_;
};

}  // namespace quadriga::cuda
