// SPDX-License-Identifier: BSD-3-Clause
// src/base/process.cpp: the process id, kept up to date by a handler that fork() runs in the child.
#include "base/process.h"

#include <fmt/format.h>
#include <pthread.h>
#include <quadriga/error.h>
#include <unistd.h>

namespace quadriga {
namespace {

void remember() noexcept { known_process_id.store(::getpid(), std::memory_order_relaxed); }

}  // namespace

// Two threads that both arrive first store the same id and register a second, harmless handler.
int first_process_id() noexcept {
  remember();
  ::pthread_atfork(nullptr, nullptr, remember);
  return known_process_id.load(std::memory_order_relaxed);
}

void refuse_forked(int owner, std::string_view object) {
  fail(Errc::unavailable,
       fmt::format(
           "{} was made in process {} and used in process {} after fork(): threads and device "
           "memory don't survive it; make a new engine in the child, or start children "
           "by spawn instead of fork",
           object, owner, process_id()));
}

}  // namespace quadriga
