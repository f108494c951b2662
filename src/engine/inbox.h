// SPDX-License-Identifier: BSD-3-Clause
// src/engine/inbox.h: messages from other threads to the driver, in order, and work that must run
// on its thread.
//
// Invariants
//   1. mutex_ guards all members but the atomic ones, by which the driver sees that there is
//      nothing to take without a lock; nothing else happens while it is held.
//   2. Each request is answered once: by the thread that took it, or by break_down(). After that
//      none is accepted, so no thread waits for an answer that never comes.
//   3. A request's work belongs to the thread that waits: it is called until its answer, or until
//      that thread has withdrawn it on the driver's thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "graph/task.h"

namespace quadriga {

struct Message {
  enum class Kind : std::uint8_t { data, submitted, ready, kept, final };
  Kind kind;
  Task* task = nullptr;
  Datum* datum = nullptr;
  std::uint64_t id = 0;           ///< Of a task that is ready, or whose promise was kept.
  std::exception_ptr error = {};  ///< Of a task whose promise was kept.
};

/// Work that another thread waits for. As long as it returns false it is tried again whenever
/// something has happened.
class DriverRequest {
 public:
  explicit DriverRequest(const std::function<bool()>& work) : work_(work) {}
  bool run() const { return work_(); }
  void answer(std::exception_ptr error);
  /// Waits for the answer. Errors: as answered.
  void await() const;
  /// False if none came in time.
  bool await_for(std::chrono::nanoseconds time) const;
  /// Its work isn't called any more. On the driver's thread.
  void withdraw() noexcept { withdrawn_ = true; }
  bool is_withdrawn() const noexcept { return withdrawn_; }

 private:
  const std::function<bool()>& work_;  ///< The waiting thread's.
  bool withdrawn_ = false;
  mutable std::mutex mutex_;  ///< Guards the error, which is there once it is answered.
  mutable std::condition_variable changed_;
  std::exception_ptr error_;
  std::atomic<bool> answered_{false};
};

class Inbox {
 public:
  /// True if no message lay there.
  bool post(const Message& message);
  /// Leaves the request to the driver. Errors: what broke it.
  void post(std::shared_ptr<DriverRequest> request);
  /// Exchanges the messages for an empty list's memory.
  void take(std::vector<Message>& messages);
  std::vector<std::shared_ptr<DriverRequest>> take_requests();
  /// Keeps those that are to be tried again.
  void put_back(std::vector<std::shared_ptr<DriverRequest>> requests);
  bool empty();
  bool has_messages() const noexcept { return has_messages_.load(std::memory_order_acquire); }
  /// Until there is a message, or so long.
  void wait_for(std::chrono::milliseconds a_while);

  /// Nobody takes anything any more: requests are answered with the error, now and later.
  void break_down(std::exception_ptr error);
  void rethrow_if_broken();
  bool is_broken() const noexcept { return is_broken_.load(std::memory_order_acquire); }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<Message> messages_;
  std::vector<std::shared_ptr<DriverRequest>> requests_;
  std::size_t retried_ = 0;  ///< Of them, which are no news.
  std::exception_ptr broken_;
  // Written under the mutex, for who looks often.
  std::atomic<bool> is_broken_{false};
  std::atomic<bool> has_messages_{false};
  std::atomic<bool> has_requests_{false};
};

}  // namespace quadriga
