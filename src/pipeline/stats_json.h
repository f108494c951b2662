// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/stats_json.h: what a run did, for its trace.
#pragma once

#include <quadriga/pipeline_stats.h>

#include <string>

namespace quadriga {

/// An object with the fields of PipelineStats by their names.
std::string to_json(const PipelineStats& stats);

}  // namespace quadriga
