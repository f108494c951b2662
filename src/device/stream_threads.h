// SPDX-License-Identifier: BSD-3-Clause
// src/device/stream_threads.h: streams under the real clock, each a queue with its own thread.
//
// Invariants:
// 1. `mutex_` guards all members but `stopping_` and `start_`; it is not held while bytes move or a
//    kernel runs, nor while all streams are gone through. Streams never move in memory once
//    created. Any thread may call anything; next_completion() is one thread's.
// 2. Only a stream's own thread takes operations out of its queue, and only from the front.
// 3. A kernel runs only while it holds a slot: one of its device's compute_streams and one of the
//    `cores`. Slots go to panel streams first, then by sequence number of the operation. Kernels
//    that wait for others need none: they would keep out whom they wait for. Copies hold a copy
//    engine instead. Both begin in the order of their device's hardware queues, if it has any.
// 4. A completion gets its end and its place in `completions_` under one hold of the lock, so
//    completions are in order of their ends.
// 5. A thread sleeps on its stream's `changed` unless its front can run. The call that enables it
//    (enqueue, finish, admit, the destructor) notifies under the lock: `waiters` of a stream are
//    the threads whose front waits for one of its events, each once; `pending_` are those whose
//    front is an operation that waits for a slot, an engine or its turn.
// 6. Where no thread can be started, the operation keeps its place with the error (`refused`), and
//    takes neither slot nor turn. Whoever brings it to the front of its stream ends it there.
#pragma once

#include <quadriga/machine.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "device/backend.h"
#include "device/hardware_queues.h"
#include "device/operation.h"
#include "device/ring.h"

namespace quadriga {

/// A thread starts with the first operation of its stream and sleeps while it has nothing to do.
class StreamThreads {
 public:
  /// Carries out a copy on the thread of its stream; returns early once `stopping` is set.
  using Copier = std::function<void(const Copy& copy, const std::atomic<bool>& stopping)>;

  /// At most `cores` kernels run at once. The machine must outlive this.
  StreamThreads(const Machine& machine, int cores, Copier copier);
  /// Drops what is queued, waits for the kernels that run.
  ~StreamThreads();
  StreamThreads(const StreamThreads&) = delete;
  StreamThreads& operator=(const StreamThreads&) = delete;

  // As in Backend.
  StreamId create_stream(DeviceId device, StreamKind kind);
  Event enqueue(StreamId stream, Operation operation);
  void wait(StreamId stream, Event event);
  std::size_t next_completion(std::span<Completion> out, Nanoseconds deadline);
  void wake() noexcept;
  bool tell(std::function<void()> ended);
  Nanoseconds now() const noexcept;

 private:
  using Clock = std::chrono::steady_clock;

  struct Queued {
    Operation operation;
    std::uint64_t sequence = 0;
    std::exception_ptr refused = {};
  };
  struct Stream {
    StreamId id = 0;
    DeviceId device = no_device;
    HardwareQueues::Place place;
    StreamKind kind = StreamKind::compute;
    Ring<Queued> queue;
    std::uint64_t issued = 0;
    std::uint64_t ended = 0;
    Event awaited;                 // What its front waits for, if it does.
    std::vector<Stream*> waiters;  // Streams that wait for events of this one.
    bool pending = false;          // Its front waits to be admitted.
    bool admitted = false;         // Its front may run.
    std::condition_variable changed;
    std::thread thread;
  };

  std::exception_ptr start(Stream& stream);
  void run(Stream& stream);
  bool wait_for_operation(std::unique_lock<std::mutex>& lock, Stream& stream);
  bool front_can_run(Stream& stream);
  bool pass_front(Stream& stream);
  void admit();
  std::vector<Stream*>::iterator next_pending();
  bool can_begin(const Stream& stream) const;
  bool has_slot(const Stream& stream) const;
  static int slots_of(const Operation& operation);
  std::exception_ptr carry_out(const Operation& operation) noexcept;
  void finish(Stream& stream, const Operation& operation, Completion completion);
  void deliver(Stream& stream, Completion completion);
  void notify_waiters(Stream& source);

  const Machine& machine_;
  const int cores_;
  const Copier copier_;
  const Clock::time_point start_ = Clock::now();
  std::atomic<bool> stopping_{false};

  std::mutex mutex_;
  std::condition_variable ended_;  // The driver waits on it.
  std::deque<Stream> streams_;
  HardwareQueues queues_;
  std::vector<Stream*> pending_;
  std::vector<int> running_;  // Kernels with slots, by device.
  int all_running_ = 0;
  Ring<Completion> completions_;
  std::function<void()> tell_;
  std::uint64_t sequence_ = 0;
  bool woken_ = false;
};

}  // namespace quadriga
