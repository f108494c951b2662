// SPDX-License-Identifier: BSD-3-Clause
// src/base/process.cpp: the process id, kept up to date by a handler that fork() runs in the child.
#include "base/process.h"

#include <fmt/format.h>
#include <pthread.h>
#include <quadriga/error.h>
#include <unistd.h>

#include <atomic>

namespace quadriga {
namespace {

std::atomic<int> current{0};

void remember() noexcept { current.store(::getpid(), std::memory_order_relaxed); }

// Two threads that both arrive first store the same id and register a second, harmless handler.
int first_time() noexcept {
  remember();
  ::pthread_atfork(nullptr, nullptr, remember);
  return current.load(std::memory_order_relaxed);
}

}  // namespace

int process_id() noexcept {
  const int id = current.load(std::memory_order_relaxed);
  return id != 0 ? id : first_time();
}

void check_not_forked(int owner, std::string_view object) {
  const int here = process_id();
  if (owner == here) [[likely]]
    return;
  fail(Errc::unavailable,
       fmt::format(
           "{} was made in process {} and used in process {} after fork(): threads and device "
           "memory don't survive it; make a new engine in the child, or start children "
           "by spawn instead of fork",
           object, owner, here));
}

}  // namespace quadriga
