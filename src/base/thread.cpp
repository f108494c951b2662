// SPDX-License-Identifier: BSD-3-Clause
// src/base/thread.cpp: a thread, or what kept it from starting.
#include "base/thread.h"

#include <fmt/format.h>
#include <pthread.h>
#include <quadriga/error.h>

#include <utility>

namespace quadriga {
namespace {

thread_local bool is_own = false;

}  // namespace

std::thread start_thread(const char* name, std::function<void()> work) {
  try {
    return std::thread([name, work = std::move(work)] {
      pthread_setname_np(pthread_self(), name);
      is_own = true;
      work();
    });
  } catch (const std::system_error& error) {
    refuse_thread(error);
  }
}

void refuse_thread(const std::system_error& error) {
  fail(Errc::unavailable,
       fmt::format("can't start a thread: {}; a limit of processes (ulimit -u), of the control "
                   "group (pids.max) or of memory (ulimit -v) is reached",
                   error.code().message()));
}

bool is_own_thread() noexcept { return is_own; }

}  // namespace quadriga
