// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/stream_estimate.h: the bound of a run that hasn't begun. Pure.
#pragma once

#include <quadriga/machine.h>
#include <quadriga/pipeline.h>

#include <span>

#include "pipeline/stage_plan.h"

namespace quadriga {

/// As Pipeline::estimate().
PipelineEstimate estimate_stream(const Machine& machine, const StagePlan& plan,
                                 const FlowOptions& options, std::span<const Chunk> chunks,
                                 std::span<const double> seconds);

}  // namespace quadriga
