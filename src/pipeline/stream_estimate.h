// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/stream_estimate.h: the bound of a run that hasn't begun. Pure.
#pragma once

#include <quadriga/machine.h>
#include <quadriga/pipeline.h>

#include <span>

#include "pipeline/stage_plan.h"

namespace quadriga {

/// As Pipeline::estimate(). `sizes`: of all chunks, if those given are the smallest and the largest
/// of them.
PipelineEstimate estimate_stream(const Machine& machine, const StagePlan& plan,
                                 const FlowOptions& options, std::span<const Chunk> chunks,
                                 std::span<const double> seconds,
                                 std::span<const double> sizes = {});

}  // namespace quadriga
