// SPDX-License-Identifier: BSD-3-Clause
// src/base/process.h: detects that an object is used in a child process after fork().
#pragma once

#include <string_view>

namespace quadriga {

/// The id of this process, without a system call; right again in a child after fork().
int process_id() noexcept;

/// Throws unless `owner`, the process_id() that an object noted when it was made, is this process.
///
/// Threads, streams and device contexts don't survive fork(), so using them would hang.
/// Errors:  unavailable, naming the object, both processes and what to do.
/// Cost:    one atomic load.
void check_not_forked(int owner, std::string_view object);

}  // namespace quadriga
