// SPDX-License-Identifier: BSD-3-Clause
// bench/divided.cpp: list schedules of the fine tasks of one coarse kernel.
#include "divided.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <initializer_list>
#include <vector>

namespace quadriga::bench {
namespace {

/// Cores, and when each fine tile that is written has its last value.
class FineGraph {
 public:
  FineGraph(std::int64_t tiles, int cores)
      : tiles_(tiles),
        free_(static_cast<std::size_t>(cores)),
        written_(static_cast<std::size_t>(tiles * tiles)) {}

  std::size_t tile(std::int64_t row, std::int64_t col) const {
    return static_cast<std::size_t>(row * tiles_ + col);
  }

  /// A task that updates a tile and reads some of the same operand.
  void run(std::size_t updated, std::initializer_list<std::size_t> read, double seconds) {
    const auto core = std::ranges::min_element(free_);
    double begin = std::max(*core, written_[updated]);
    for (const std::size_t each : read) begin = std::max(begin, written_[each]);
    written_[updated] = *core = begin + seconds;
  }

  double seconds() const { return std::ranges::max(free_); }

 private:
  std::int64_t tiles_;
  std::vector<double> free_;
  std::vector<double> written_;
};

void potrf(FineGraph& graph, std::int64_t tiles, const FineSeconds& seconds) {
  for (std::int64_t k = 0; k < tiles; ++k) {
    graph.run(graph.tile(k, k), {}, seconds.potrf);
    for (std::int64_t i = k + 1; i < tiles; ++i)
      graph.run(graph.tile(i, k), {graph.tile(k, k)}, seconds.trsm);
    for (std::int64_t j = k + 1; j < tiles; ++j) {
      graph.run(graph.tile(j, j), {graph.tile(j, k)}, seconds.syrk);
      for (std::int64_t i = j + 1; i < tiles; ++i)
        graph.run(graph.tile(i, j), {graph.tile(i, k), graph.tile(j, k)}, seconds.gemm);
    }
  }
}

/// From the right: a column of fine tiles is solved, then those right of it are updated.
void trsm(FineGraph& graph, std::int64_t tiles, const FineSeconds& seconds) {
  for (std::int64_t k = 0; k < tiles; ++k) {
    for (std::int64_t i = 0; i < tiles; ++i) graph.run(graph.tile(i, k), {}, seconds.trsm);
    for (std::int64_t j = k + 1; j < tiles; ++j)
      for (std::int64_t i = 0; i < tiles; ++i)
        graph.run(graph.tile(i, j), {graph.tile(i, k)}, seconds.gemm);
  }
}

void update(FineGraph& graph, std::int64_t tiles, const FineSeconds& seconds, bool symmetric) {
  for (std::int64_t k = 0; k < tiles; ++k)
    for (std::int64_t j = 0; j < tiles; ++j)
      for (std::int64_t i = symmetric ? j : 0; i < tiles; ++i)
        graph.run(graph.tile(i, j), {}, symmetric && i == j ? seconds.syrk : seconds.gemm);
}

}  // namespace

double divided_seconds(std::string_view kernel, std::int64_t tiles, const FineSeconds& seconds,
                       int cores) {
  FineGraph graph(tiles, cores);
  if (kernel == "potrf") {
    potrf(graph, tiles, seconds);
  } else if (kernel == "trsm") {
    trsm(graph, tiles, seconds);
  } else {
    require(kernel == "syrk" || kernel == "gemm",
            fmt::format("kernel '{}': expected gemm, syrk, trsm or potrf", kernel));
    update(graph, tiles, seconds, kernel == "syrk");
  }
  return graph.seconds();
}

}  // namespace quadriga::bench
