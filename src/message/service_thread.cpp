// SPDX-License-Identifier: BSD-3-Clause
// src/message/service_thread.cpp: the loop around poll().
#include "message/service_thread.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>

#include "base/thread.h"

namespace quadriga::message {
namespace {

// A thread that starts while it lives has them blocked. Faults of its own aren't blocked.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t all;
    sigfillset(&all);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
      sigdelset(&all, own);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

std::thread start_without_signals(std::function<void()> work) {
  const SignalsBlocked blocked;
  return start_thread("quadriga peers", std::move(work));
}

}  // namespace

void close_all(std::vector<Member>& members) noexcept {
  for (Member& each : members) {
    if (each.event >= 0) close(each.event);
    if (each.process >= 0) close(each.process);
  }
  members.clear();
}

ServiceThread::ServiceThread(int rank, const std::vector<Member>& members,
                             std::function<Sleep()> serve, std::function<void(int)> ended)
    : event_(members[static_cast<std::size_t>(rank)].event),
      serve_(std::move(serve)),
      ended_(std::move(ended)),
      thread_(start_without_signals([this, rank, members] { run(rank, members); })) {}

ServiceThread::~ServiceThread() {
  stopping_ = true;
  const std::uint64_t one = 1;
  if (!thread_.joinable()) return;
  static_cast<void>(!write(event_, &one, sizeof one));
  thread_.join();
}

void ServiceThread::forget() noexcept {
  if (thread_.joinable()) thread_.detach();
}

void ServiceThread::run(int rank, const std::vector<Member>& members) {
  std::vector<pollfd> asked{{event_, POLLIN, 0}};
  std::vector<int> ranks{rank};
  for (int other = 0; other < static_cast<int>(members.size()); ++other) {
    const int process = members[static_cast<std::size_t>(other)].process;
    if (other == rank || process < 0) continue;
    asked.push_back({process, POLLIN, 0});
    ranks.push_back(other);
  }
  int longest = -1;
  while (!stopping_) {
    if (poll(asked.data(), asked.size(), longest) < 0) continue;
    std::uint64_t count = 0;
    if (asked[0].revents) static_cast<void>(!read(event_, &count, sizeof count));
    for (std::size_t i = 1; i < asked.size(); ++i) {
      if (!asked[i].revents) continue;
      asked[i].fd = -1;  // An ended process stays readable.
      ended_(ranks[i]);
    }
    Sleep sleep = Sleep::none;
    while (!stopping_ && sleep == Sleep::none) sleep = serve_();
    longest = sleep == Sleep::brief   ? 1
              : sleep == Sleep::slice ? static_cast<int>(slice.count())
                                      : -1;
  }
}

}  // namespace quadriga::message
