// SPDX-License-Identifier: BSD-3-Clause
// bench/tile_graphs.h: what tiled algorithms must take on a machine, from its kernel times alone.
#pragma once

#include <quadriga/machine.h>

#include <cstdint>

namespace quadriga::bench {

/// Kernel times on the machine's first device; nothing of the engine is asked.
struct TileGraph {
  double work_seconds = 0;     ///< Of all kernels.
  double longest_seconds = 0;  ///< Of the longest chain of kernels that depend on each other.
};

/// C = A*B + C of `tiles` x `tiles` tiles: a chain for each tile of C.
TileGraph product_graph(const Machine& machine, std::int64_t tiles, std::int64_t order,
                        DType dtype);

/// Cholesky by tiles: potrf, trsm, syrk and gemm, updates of a tile in the order of columns.
TileGraph cholesky_graph(const Machine& machine, std::int64_t tiles, std::int64_t order,
                         DType dtype);

}  // namespace quadriga::bench
