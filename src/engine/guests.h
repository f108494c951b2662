// SPDX-License-Identifier: BSD-3-Clause
// src/engine/guests.h: whether a thread that waits for room in the window runs tasks meanwhile.
#pragma once

namespace quadriga {

/// Of this thread. Not where handlers of signals may run: in a body they would count as the body.
inline thread_local constinit bool guest_rests = false;

}  // namespace quadriga
