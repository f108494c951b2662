// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/tile_size.h: which tile a call works with.
#pragma once

#include <quadriga/linalg.h>

#include <cstdint>

namespace quadriga::linalg {

/// Whether tiles of a factorization may be tried: not for what has the sizes of one and isn't.
enum class Trials : std::uint8_t { allowed, none };

/// Options::tile, or the default for the problem; at least 1.
std::int64_t tile_for(const Engine& engine, const Problem& problem, const Options& options,
                      Trials trials = Trials::allowed);

}  // namespace quadriga::linalg
