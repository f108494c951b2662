// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/stage_error.h: how the failure of a stage is raised.
#pragma once

#include <quadriga/pipeline.h>

namespace quadriga {

/// Throws task_failed, or an Error's own code, naming stage and chunk, with the cause nested.
[[noreturn]] void raise_stage_error(const ChunkFailure& failure);

}  // namespace quadriga
