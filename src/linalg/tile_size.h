// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/tile_size.h: which tile a call works with.
#pragma once

#include <quadriga/linalg.h>

namespace quadriga::linalg {

/// Options::tile, or the default for the problem; at least 1.
std::int64_t tile_for(const Engine& engine, const Problem& problem, const Options& options);

}  // namespace quadriga::linalg
