// SPDX-License-Identifier: BSD-3-Clause
// src/base/c_message.cpp: each thread's last failure, in words.
#include "base/c_message.h"

namespace quadriga {
namespace {

thread_local std::string last_failure;

}  // namespace

std::int64_t c_failed(std::int64_t number, const std::string& what) {
  last_failure = what;
  return number;
}

std::int64_t c_failure_of(Errc code) noexcept {
  switch (code) {
    case Errc::too_large:
      return QUADRIGA_TOO_LARGE;
    case Errc::task_failed:
      return QUADRIGA_TASK_FAILED;
    case Errc::device_lost:
      return QUADRIGA_DEVICE_LOST;
    case Errc::unavailable:
      return QUADRIGA_UNAVAILABLE;
    case Errc::invalid_argument:
      return QUADRIGA_INVALID;
    case Errc::peer_lost:
      return QUADRIGA_PEER_LOST;
    case Errc::deadline:
      return QUADRIGA_DEADLINE;
    case Errc::cancelled:
      return QUADRIGA_CANCELLED;
    default:
      return QUADRIGA_OTHER;
  }
}

}  // namespace quadriga

extern "C" const char* quadriga_message(void) { return quadriga::last_failure.c_str(); }
