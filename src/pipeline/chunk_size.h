// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/chunk_size.h: how many rows of an array make a chunk on a machine. Pure.
//
// Small chunks cost a latency and a launch each; large ones make the first copy in and the last
// copy out, which nothing overlaps, long. The bound of a stream knows heads and tails, so the best
// number of chunks is the one with the least bound and costs together.
#pragma once

#include <quadriga/machine.h>

#include <cstdint>

#include "pipeline/stage_plan.h"

namespace quadriga {

/// Rows of each chunk of an array of `rows`, by what a chunk of one row and one of two rows need;
/// what they need is taken to be linear.
///
/// Errors: too_large if a row doesn't fit; unavailable if no device runs all kernels.
std::int64_t choose_rows(const Machine& machine, const StagePlan& plan, const FlowOptions& options,
                         const Chunk& one, const Chunk& two, std::int64_t rows);

}  // namespace quadriga
