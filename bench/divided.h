// SPDX-License-Identifier: BSD-3-Clause
// bench/divided.h: what a coarse kernel takes that cores run as a graph of fine ones.
#pragma once

#include <cstdint>
#include <string_view>

namespace quadriga::bench {

/// Seconds of one kernel of each kind on one core, on fine tiles.
struct FineSeconds {
  double gemm = 0;
  double syrk = 0;
  double trsm = 0;
  double potrf = 0;
};

/// Seconds of a coarse `kernel` (gemm, syrk, trsm or potrf) of tiles x tiles fine tiles: its fine
/// tasks, in the order of the tiled algorithm, each take the core that is free first.
///
/// Errors:  invalid_argument if the kernel is another.
/// Source:  Wu, dissertation, University of Tennessee 2017, section 3.2.
double divided_seconds(std::string_view kernel, std::int64_t tiles, const FineSeconds& seconds,
                       int cores);

}  // namespace quadriga::bench
