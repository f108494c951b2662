// SPDX-License-Identifier: BSD-3-Clause
// tests/model/graph/random_sharing.h: random programs on memory that several data share and that
// the host accesses between tasks.
#pragma once

#include <cstdint>
#include <string>

#include "unit/engine/engines.h"

namespace quadriga {

/// One thread registers overlapping views, submits, waits, and accesses data on the host, nested or
/// not, beside a plain walk through the same steps; empty, or what was wrong.
std::string run_sharing(std::uint64_t seed, Where where);
/// Several threads at once add to overlapping views by tasks and on the host: each sum is what all
/// added, in any order. Empty, or what was wrong.
std::string run_sharing_threads(std::uint64_t seed, Where where);

}  // namespace quadriga
