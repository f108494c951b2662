// SPDX-License-Identifier: BSD-3-Clause
// bench/timed_backend.h: a backend that says how much time passed inside of its calls.
#pragma once

#include <memory>

#include "device/backend.h"

namespace quadriga::bench {

/// Seconds of CPU time of the calling thread.
double thread_seconds();

/// What a wrapped backend has noted since the last reset.
struct BackendTime {
  double seconds = 0;            ///< Inside of the calls that queue or wait, by the steady clock.
  double calls = 0;              ///< So many of them.
  double launches = 0;           ///< Kernels.
  double before_operations = 0;  ///< thread_seconds() when the clock was read last before any of
                                 ///< them: 0 if it wasn't.
};

/// Forwards every call and takes the time of those that cost something. `time` must outlive it.
std::unique_ptr<Backend> make_timed_backend(std::unique_ptr<Backend> inner, BackendTime& time);

/// Seconds that timing one call takes outside of what is noted as the call's.
double seconds_outside_a_call();

}  // namespace quadriga::bench
