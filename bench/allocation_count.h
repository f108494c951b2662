// SPDX-License-Identifier: BSD-3-Clause
// bench/allocation_count.h: how often this process has asked for memory.
#pragma once

#include <cstdint>

namespace quadriga::bench {

/// Calls of malloc and its kin, by any thread, since the process began.
std::int64_t allocation_count() noexcept;

}  // namespace quadriga::bench
