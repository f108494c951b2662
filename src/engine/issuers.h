// SPDX-License-Identifier: BSD-3-Clause
// src/engine/issuers.h: carry out instructions on a backend, one thread per device, and return
// completions.
//
// Invariants
//   1. Instructions arrive through take(), in the order of their numbers; each issuer carries out
//      those of each of its device's streams in that order. What an issuer that is awake needn't
//      have at once is kept back until next(), so that it is handed over together: both of them
//      would else spend their time on passing the queue to and fro. Not so for a single device,
//      whose issuer has more to do than the driver.
//   2. A wait is queued only once the operation waited for is: `queued_` gives the progress of each
//      stream. Until then the wait and what follows it in its stream are set aside, in `Held`,
//      and other streams go on; but nothing passes a launch that waits on the device for its gang,
//      which it could stand behind there. An issuer waits only when all that it has is held, and
//      then for the held one with the smallest number. What that one waits for has a smaller
//      number still, so the issuer with the smallest number of all never waits for long: the
//      driver, which may keep an operation back, waits for no issuer.
//   3. Issuer::mutex guards its queue and `stopping`; `asleep` is written under it. `kept` is the
//      driver's. broken_mutex_ guards `broken_`.
//   4. What is queued can be revoked (task_bodies.h): an issuer takes nothing out of its queue, and
//      what it hands over ends with the error instead of running.
//   5. take() and next() belong to one thread, the driver's. If the backend needs no threads, as
//      under the virtual clock, take() carries out everything itself.
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

class Issuers {
 public:
  /// `device_of_stream`: whose issuer calls for which stream. Without threads the caller does all.
  Issuers(Backend& backend, std::vector<DeviceId> device_of_stream, bool threads);
  ~Issuers();
  Issuers(const Issuers&) = delete;
  Issuers& operator=(const Issuers&) = delete;

  /// Takes what is pending. Errors: what the backend throws, here or at the next call; nothing more
  /// is carried out then.
  void take(Instructions& instructions);
  /// As Backend::next_completion(), once all that was taken is handed over.
  std::size_t next(std::span<Completion> out, Nanoseconds deadline);
  /// Ends the threads; what they have not carried out is dropped.
  void stop() noexcept;

 private:
  struct Issuer {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<Instruction> queue;
    bool stopping = false;
    std::atomic<bool> asleep{false};
    std::vector<Instruction> kept;
    std::thread thread;
  };
  /// What a stream may not queue yet: a wait, and what follows it.
  struct HeldStream {
    StreamId stream = 0;
    std::deque<Instruction> instructions;
  };
  struct Held {
    std::vector<HeldStream> streams;  ///< Each has some.
    std::uint64_t meeting = none;     ///< The first launch held that waits for its gang.
    static constexpr std::uint64_t none = UINT64_MAX;
  };
  void loop(Issuer& issuer);
  bool next_batch(Issuer& issuer, bool sleeps, std::vector<Instruction>& batch) const;
  void carry_out_or_hold(Instruction& instruction, Held& held);
  static void hold(Instruction& instruction, Held& held, HeldStream* stream);
  void carry_out_held(Held& held);
  void await_first(const Held& held);
  static std::uint64_t first_meeting(std::span<const HeldStream> streams) noexcept;
  bool may_go(const Instruction& instruction, const Held& held) const;
  void deal_out(std::span<Instruction> instructions);
  static void hand_over(Issuer& issuer);
  void carry_out(const Instruction& instruction);
  void break_down(std::exception_ptr error) noexcept;
  void let_go() noexcept;
  void rethrow_if_broken();

  Backend& backend_;
  const std::vector<DeviceId> device_of_stream_;
  /// By stream: the ticket that was queued last.
  std::deque<std::atomic<std::uint64_t>> queued_;
  std::vector<std::unique_ptr<Issuer>> issuers_;  ///< By device; none without threads.
  std::atomic<bool> stopping_{false};
  std::atomic<bool> is_broken_{false};
  std::mutex broken_mutex_;
  std::exception_ptr broken_;
};

}  // namespace quadriga
