// SPDX-License-Identifier: BSD-3-Clause
// src/base/affinity.cpp: affinity masks of threads.
#include "base/affinity.h"

#include <sched.h>

#include <exception>
#include <thread>

#include "base/thread.h"

namespace quadriga {

bool bind_thread(const std::vector<int>& processors) noexcept {
  cpu_set_t allowed;
  cpu_set_t wanted;
  CPU_ZERO(&wanted);
  // Machines with more processors than a mask holds: threads stay where they are.
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return false;
  for (const int processor : processors) {
    const bool fits = processor >= 0 && processor < CPU_SETSIZE;
    if (fits && CPU_ISSET(processor, &allowed)) CPU_SET(processor, &wanted);
  }
  return CPU_COUNT(&wanted) > 0 && ::sched_setaffinity(0, sizeof(wanted), &wanted) == 0;
}

void run_near(const std::vector<int>& processors, const std::function<void()>& call) {
  if (processors.empty()) return call();
  std::exception_ptr error;
  start_thread("quadriga near", [&] {
    bind_thread(processors);
    try {
      call();
    } catch (...) {
      error = std::current_exception();
    }
  }).join();
  if (error) std::rethrow_exception(error);
}

}  // namespace quadriga
