// SPDX-License-Identifier: BSD-3-Clause
// tests/sanitized.h: whether a test was compiled with a sanitizer, which takes time of its own.
#pragma once

namespace quadriga {

/// The thread sanitizer makes tests ten times slower, and has nothing to see where one thread does
/// everything, as under the virtual clock.
#ifdef __SANITIZE_THREAD__
constexpr bool is_thread_sanitized = true;
#else
constexpr bool is_thread_sanitized = false;
#endif

#ifdef __SANITIZE_ADDRESS__
constexpr bool is_sanitized = true;
#else
constexpr bool is_sanitized = is_thread_sanitized;
#endif

}  // namespace quadriga
