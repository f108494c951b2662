// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/stream_table.h: CUDA streams, what is in flight on them, and which of it has
// ended.
//
// Invariants
//   1. Operations of a stream are queued by one thread at a time, its issuer: begin() to end(),
//      cover(), wait() and wait_for_gates(); for streams of one device by the same one. One thread,
//      the driver, calls sweep(), and one create(), at once with issuers. synchronize() and the
//      destructor are called while nothing else is. The rest may be called by any thread. Nothing
//      here waits for a device but synchronize().
//   2. A stream's `mutex` guards its `queue`, `awaited` and the name of its open kernel, and is
//      held for none of the runtime's calls. Its counts are written under it and read by anybody.
//      Issuers push, the driver pops. Nobody holds the mutexes of two streams.
//   3. An operation holds the CUDA event that it recorded until it is retired, and an issuer that
//      makes a stream wait for an event holds it for this call: see event_pool.h. It finds the
//      event under the mutex of the stream, if the operation isn't retired by then.
//   4. Of brief kernels in a row the last one's event stands for all: those behind `covered` get
//      one before anybody waits for them or asks whether they have ended. Only streams without a
//      word have any. Who records such an event has the stream's `turn`, as an issuer has from
//      begin() to end(): no event comes between what a variant queues. The driver takes a turn only
//      if it is free, for one record; nobody takes two.
//   5. Operations of a stream are retired in order, and after all that they waited for. On a single
//      device, that an operation has ended tells that those have, too: they are retired without
//      being asked for.
//   6. Streams of several devices have words, to which they write the ticket of each operation
//      behind it. After a fault a stream writes none: what a word tells has ended well.
//   7. On a lost device operations end with the loss, once all that they waited for is retired. No
//      thread of the host touches what they copy from or to by then: losses.h has the states.
//      Copies from or to its memory that other devices make end with the loss as well: nobody knows
//      what they moved. `lose_mutex_` is held by those who lose devices, for all of it.
#pragma once

#include <cuda_runtime_api.h>
#include <quadriga/machine.h>

#include <array>
#include <atomic>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "device/backend.h"
#include "device/cuda/event_pool.h"
#include "device/cuda/losses.h"
#include "device/cuda/stream_gate.h"
#include "device/cuda/turn.h"
#include "device/growing.h"
#include "device/ring.h"

namespace quadriga::cuda {

/// The streams of all CUDA devices of a backend; ids count from 0.
class StreamTable {
 public:
  /// Called for each stream of a device that is lost, before its operations end, by any thread.
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

  cudaStream_t native(std::uint32_t stream) const noexcept { return streams_[stream].native; }

  /// What the caller queues an operation with; end() must follow begin().
  struct Queued {
    cudaStream_t native = nullptr;
    std::function<void()> on_end;  ///< Runs when the operation is retired; may throw.
    std::exception_ptr error;      ///< What the operation shall end with.
    Gate gate;                     ///< Opens when the host's part of the operation is done, too.
    std::string_view kernel;       ///< As begin() was told.
    DeviceId partner = no_device;  ///< Another device whose memory it reads or writes.
  };
  /// Opens an operation of a stream, which runs the kernel of this name or none. Its error is set
  /// if its device or its partner is lost: queue nothing then.
  Queued& begin(std::uint32_t stream, Nanoseconds now, std::string_view kernel = {},
                DeviceId partner = no_device);
  /// The one that is open.
  Queued& open(std::uint32_t stream) { return streams_[stream].open.queued; }
  /// Closes it, and returns its ticket.
  std::uint64_t end(std::uint32_t stream);
  /// Records an event for what has none: nobody can while an operation of the stream is open.
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
  bool host_is_settled(std::uint32_t stream) const;
  /// Makes a stream wait for the host's part of its own operations.
  void wait_for_gates(std::uint32_t stream);
  bool idle() const noexcept;
  /// Operations that were queued, and that were retired.
  std::uint64_t issued(std::uint32_t stream) const noexcept { return streams_[stream].issued; }
  std::uint64_t ended(std::uint32_t stream) const noexcept { return streams_[stream].ended; }
  /// Whether sweep() asks CUDA, which keeps those from queueing that do it meanwhile.
  bool asks() const noexcept { return !tells_; }
  bool lost(DeviceId device) const noexcept { return losses_.is_losing(device); }

 private:
  struct Awaited {
    std::uint32_t stream = 0;
    std::uint64_t ticket = 0;
  };
  struct InFlight {
    Queued queued;
    HeldEvent event;
    Nanoseconds issued = 0;
    std::size_t awaited = 0;  // How many places of its stream's `awaited` are its own.
  };
  struct alignas(64) Stream {
    DeviceId device = no_device;
    cudaStream_t native = nullptr;
    std::uint64_t* word = nullptr;  // In pinned memory: the ticket that the stream reached.
    Turn turn;

    // The issuer's.
    std::vector<std::uint64_t> waited;  // By source stream: the latest ticket waited for.
    std::size_t awaited_next = 0;       // How many of `awaited` are the next operation's.
    Gate last_gate;
    InFlight open;

    // Shared.
    mutable std::mutex mutex;
    Ring<InFlight> queue;
    Ring<Awaited> awaited;  // What operations in the queue wait for, in order.
    std::atomic<std::uint64_t> issued{0};
    std::atomic<std::uint64_t> covered{0};  // The latest ticket with an event.
    std::atomic<std::size_t> gates{0};      // Operations in flight that have one.
    std::atomic<std::uint64_t> ended{0};
    std::atomic<bool> brief{false};  // What ended when the driver looked took no time to speak of.

    // The driver's.
    Nanoseconds last_end = 0;
    std::size_t ended_at_once = 1;       // When the stream was asked last.
    std::uint64_t seen = 0;              // `issued` when the stream was looked at last.
    Nanoseconds asked = 0;               // When a stream with a word was asked last.
    std::array<Nanoseconds, 64> ends{};  // Of the latest tickets.

    std::size_t in_flight() const noexcept { return issued - ended; }
    std::size_t uncovered() const noexcept { return issued - covered; }
  };
  /// An operation in flight that has an event: its place in the queue, what tells of its end.
  struct Mark {
    std::size_t position = 0;
    cudaEvent_t event = nullptr;
    Gate gate;
  };

  HeldEvent take_event(DeviceId device);
  static bool needs_event(const Stream& stream);
  void cover(Stream& stream);
  void cover_in_turn(Stream& stream);
  std::uint64_t* take_word();

  bool front_waits(const Stream& stream) const;
  bool can_wait(Stream& stream, Nanoseconds now) const;
  bool sweep_stream(std::uint32_t id, Nanoseconds now, Ring<Completion>& out);
  std::size_t count_ended(Stream& stream, Nanoseconds now);
  std::size_t count_asked(Stream& stream);
  std::size_t count_told(Stream& stream, Nanoseconds now);
  bool is_silent(const Stream& stream, Nanoseconds now) const;
  static std::uint64_t reached(const Stream& stream);
  static Mark mark_from(const Stream& stream, std::size_t position);
  static std::size_t last_mark(const Stream& stream, std::size_t first, std::size_t last);
  bool has_ended(const Stream& stream, const Mark& mark);
  void retire(std::uint32_t id, std::uint64_t ticket, Nanoseconds now, Ring<Completion>& out);
  std::variant<Awaited, InFlight> take_front(Stream& stream, Nanoseconds& begin);
  Nanoseconds end_of(const Awaited& awaited) const;

  static bool answers(const Stream& stream);
  void lose(DeviceId device, cudaError_t error, std::string_view call);
  void set_aside(DeviceId device, const std::string& why);
  void leave_lost_device() const;
  std::string kernels_in_flight() const;

  /// About what queueing a few takes.
  static constexpr Nanoseconds usually_brief = 20'000;

  const std::vector<int> ordinals_;
  const Abandon abandon_;
  const Nanoseconds brief_;
  const bool tells_;  // Streams have words.
  std::mutex lose_mutex_;
  Losses losses_;
  std::deque<EventPool> events_;  // By device; destroyed after those who hold any.
  Growing<Stream> streams_;
  std::vector<std::uint64_t*> word_blocks_;
};

}  // namespace quadriga::cuda
