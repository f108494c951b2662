// SPDX-License-Identifier: BSD-3-Clause
// bench/empty_graphs.h: graphs of tasks that do nothing, to see what a task costs.
#pragma once

#include <quadriga/engine.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace quadriga::bench {

/// Submits the tasks of one graph again and again.
///
/// gemm3        a product of 58 x 58 tiles: 195,112 tasks of 2 tiles read and 1 updated, those of a
///              tile of C one after the other
/// independent  200,000 tasks without operands
/// chains       200,000 tasks that update one of 64 tiles in turn
/// chain        200,000 tasks that update one tile
class EmptyGraph {
 public:
  /// `order` of the product's grid; 0: as above.
  EmptyGraph(Engine& engine, std::string_view name, std::int64_t order = 0);
  /// Submits all tasks and returns their number. `slow`: each takes a few microseconds, so that
  /// the window of submitted tasks is full most of the time.
  std::int64_t submit(bool slow = false);
  /// Bytes of the tiles, which are the caller's and not the runtime's.
  std::size_t tile_bytes() const noexcept { return elements_.size() * sizeof(double); }
  const Codelet& codelet() const noexcept { return codelet_; }

 private:
  std::int64_t submit_product(const Codelet& codelet);

  Engine& engine_;
  Codelet codelet_;
  Codelet slow_codelet_;
  std::int64_t order_ = 0;  // Of the product's grid; 0: not a product.
  std::vector<double> elements_;
  std::vector<Data> tiles_;  // A, B and C one after the other, or the chains' tiles.
};

/// Seconds a task, the median of passes over the graph. The first pass makes caches and pools what
/// they stay, and isn't counted.
double seconds_a_task(Engine& engine, EmptyGraph& graph, long long passes);

}  // namespace quadriga::bench
