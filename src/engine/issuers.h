// SPDX-License-Identifier: BSD-3-Clause
// src/engine/issuers.h: carry instructions out on a backend, one thread a device, and give back
// what has ended.
//
// Invariants
//   1. Instructions come in by take(), in the order of their numbers; each issuer carries out those
//      of its device's streams in that order.
//   2. A wait for another device's operation is queued only once that operation is: `queued_` tells
//      by stream how far its issuer has come. What is waited for has a smaller number, so that the
//      issuer with the smallest number left never waits, and nobody waits for ever.
//   3. Issuer::mutex guards its queue and `stopping`; refusals_mutex_ guards refusals
//      and `broken_`.
//   4. An operation that the backend refuses to queue keeps its ticket: it ends with the error once
//      all before it on its stream have ended. The backend counts without it: see Refusals.
//   5. take() and next() belong to one thread, the driver's. Where the backend has no use for
//      threads, as under the virtual clock, take() carries out everything itself.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "device/backend.h"
#include "device/instructions.h"

namespace quadriga {

/// Tickets of one stream as the scheduler counts them, and as the backend does: without operations
/// that were refused.
class Refusals {
 public:
  struct Refusal {
    std::uint64_t ticket = 0;
    std::exception_ptr error;
  };
  void add(std::uint64_t ticket, std::exception_ptr error) {
    all_.push_back({ticket, std::move(error)});
  }
  /// The backend's last ticket at or before one of the scheduler's; 0 if all were refused.
  std::uint64_t to_backend(std::uint64_t ticket) const noexcept;
  /// The refusal of a ticket; null if it was queued.
  const Refusal* find(std::uint64_t ticket) const noexcept;

 private:
  std::vector<Refusal> all_;  ///< Ascending.
};

class Issuers {
 public:
  /// `device_of_stream`: whose issuer calls for which stream. Without threads the caller does all.
  Issuers(Backend& backend, std::vector<DeviceId> device_of_stream, bool threads);
  ~Issuers();
  Issuers(const Issuers&) = delete;
  Issuers& operator=(const Issuers&) = delete;

  /// Takes what is pending. Errors: what the backend throws of anything but a kernel, here or at
  /// the next call.
  void take(Instructions& instructions);
  /// As Backend::next_completion(), with the scheduler's tickets.
  std::size_t next(std::span<Completion> out, Nanoseconds deadline);
  /// Ends the threads; what they have not carried out is dropped.
  void stop() noexcept;

 private:
  struct Issuer {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<Instruction> queue;
    bool stopping = false;
    bool asleep = false;
    std::thread thread;
  };
  struct Stream {
    std::atomic<std::uint64_t> queued{0};  ///< The scheduler's ticket that was queued last.
    std::uint64_t ended = 0;               ///< The driver's: the one that was given back last.
    Refusals refusals;                     ///< Guarded by refusals_mutex_.
  };

  void loop(Issuer& issuer);
  void hand_over(std::span<const Instruction> instructions);
  void carry_out(const Instruction& instruction);
  void queue_operation(const Instruction& instruction, Stream& stream);
  void await_queued(Event event);
  void break_down(std::exception_ptr error) noexcept;
  void rethrow_if_broken();
  void hold(std::span<const Completion> ended);
  std::size_t take_held(std::span<Completion> out);

  Backend& backend_;
  const std::vector<DeviceId> device_of_stream_;
  std::deque<Stream> streams_;
  std::vector<std::unique_ptr<Issuer>> issuers_;  ///< By device; none without threads.
  std::atomic<bool> any_refused_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> is_broken_{false};
  std::mutex refusals_mutex_;
  std::exception_ptr broken_;
  std::deque<Completion> held_;  ///< The driver's: ends that wait for refusals to come before them.
};

}  // namespace quadriga
