// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/stage_error.h: how the failure of a stage is raised.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

namespace quadriga {

/// Throws task_failed, or an Error's own code, naming stage and chunk, with the cause nested.
[[noreturn]] void raise_stage_error(std::uint64_t chunk, const std::string& stage,
                                    const std::exception_ptr& cause);

}  // namespace quadriga
