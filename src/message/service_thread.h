// SPDX-License-Identifier: BSD-3-Clause
// src/message/service_thread.h: serves a rank while it computes, and sees others end.
//
// Invariants
//   1. It sleeps in poll() on the own eventfd and on the ends of the other processes, as long as
//      `serve` says.
//   2. `serve` is called after each waking until it says that there is no more to do at once;
//      `ended` once for each process.
//   3. It takes no signals: they are the program's.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

namespace quadriga::message {

/// Another rank's process, as it was introduced.
struct Member {
  int event = -1;    ///< eventfd of its service thread.
  int process = -1;  ///< pidfd; -1: this process.
  pid_t pid = -1;    ///< As this process sees it; -1: it doesn't.
};

void close_all(std::vector<Member>& members) noexcept;

class ServiceThread {
 public:
  /// How long it may sleep.
  enum class Sleep { none, brief, slice, until_woken };
  static constexpr std::chrono::milliseconds slice{100};
  /// The members' descriptors must live as long as it.
  ServiceThread(int rank, const std::vector<Member>& members, std::function<Sleep()> serve,
                std::function<void(int rank)> ended);
  ~ServiceThread();
  ServiceThread(const ServiceThread&) = delete;
  ServiceThread& operator=(const ServiceThread&) = delete;
  /// In a child after fork(), which has no such thread.
  void forget() noexcept;

 private:
  void run(int rank, const std::vector<Member>& members);

  const int event_;
  const std::function<Sleep()> serve_;
  const std::function<void(int)> ended_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace quadriga::message
