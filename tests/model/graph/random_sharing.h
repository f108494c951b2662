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

/// The same on a given engine, on whose GPUs bodies run as `on_gpu` makes variants of them. The
/// first leaves no data there, so that devices which take long to get ready serve several programs.
std::string run_sharing(std::uint64_t seed, Engine& engine, Kernel (*on_gpu)(Kernel));
std::string run_sharing_threads(std::uint64_t seed, Engine& engine, Kernel (*on_gpu)(Kernel));

}  // namespace quadriga
