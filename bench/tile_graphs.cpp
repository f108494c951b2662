// SPDX-License-Identifier: BSD-3-Clause
// bench/tile_graphs.cpp: work and longest chain of tiled products and Cholesky.
#include "tile_graphs.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace quadriga::bench {
namespace {

class Times {
 public:
  Times(const Machine& machine, std::int64_t order, DType dtype)
      : machine_(machine), order_(static_cast<double>(order)), dtype_(dtype) {}

  /// Of a kernel on a square tile, as "gemm".
  double operator()(const char* kernel) const {
    const std::string name = fmt::format("{}{}", dtype_ == DType::float32 ? 's' : 'd', kernel);
    return machine_.kernel_seconds(machine_.devices.front(), name, order_,
                                   order_ * order_ * order_);
  }

 private:
  const Machine& machine_;
  double order_;
  DType dtype_;
};

/// When each tile of a lower triangle has its newest content.
class Ends {
 public:
  explicit Ends(std::int64_t tiles) : tiles_(tiles), ends_(tiles * tiles) {}
  double& operator()(std::int64_t i, std::int64_t j) { return ends_[i * tiles_ + j]; }

 private:
  std::int64_t tiles_;
  std::vector<double> ends_;
};

}  // namespace

TileGraph product_graph(const Machine& machine, std::int64_t tiles, std::int64_t order,
                        DType dtype) {
  const double gemm = Times(machine, order, dtype)("gemm");
  const double count = static_cast<double>(tiles);
  return {.work_seconds = count * count * count * gemm, .longest_seconds = count * gemm};
}

TileGraph cholesky_graph(const Machine& machine, std::int64_t tiles, std::int64_t order,
                         DType dtype) {
  const Times seconds(machine, order, dtype);
  const double potrf = seconds("potrf"), trsm = seconds("trsm");
  const double syrk = seconds("syrk"), gemm = seconds("gemm");
  TileGraph graph;
  Ends end(tiles);
  for (std::int64_t k = 0; k < tiles; ++k) {
    graph.work_seconds += potrf;
    end(k, k) += potrf;
    for (std::int64_t i = k + 1; i < tiles; ++i) {
      graph.work_seconds += trsm;
      end(i, k) = std::max(end(i, k), end(k, k)) + trsm;
    }
    for (std::int64_t i = k + 1; i < tiles; ++i) {
      for (std::int64_t j = k + 1; j <= i; ++j) {
        const double update = i == j ? syrk : gemm;
        graph.work_seconds += update;
        end(i, j) = std::max({end(i, j), end(i, k), end(j, k)}) + update;
      }
    }
  }
  graph.longest_seconds = end(tiles - 1, tiles - 1);
  return graph;
}

}  // namespace quadriga::bench
