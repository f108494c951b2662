// SPDX-License-Identifier: BSD-3-Clause
// src/base/pause.h: what a thread does between two looks at what it waits for, awake.
#pragma once

#include <thread>

namespace quadriga {

/// Tells the processor that we spin.
inline void pause_briefly() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace quadriga
