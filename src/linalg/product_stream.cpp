// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/product_stream.cpp: plans of products whose operands don't fit: rows of A stay while
// B and C stream past.
#include "linalg/product_search.h"
#include "linalg/real.h"
#include "linalg/special_cases.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace quadriga::linalg {
namespace {

constexpr double never_fits = std::numeric_limits<double>::infinity();

class StreamPlanner {
 public:
  StreamPlanner(const ProductTimes& times, const DeviceGroup& group, const Problem& problem)
      : times_(times), group_(group), problem_(problem) {}

  std::vector<ProductPlan> best(double near) const {
    std::vector<ProductPlan> found;
    double least = never_fits;
    const auto consider = [&](ProductPlan plan) {
      plan.seconds = panel_seconds(plan);
      if (plan.seconds >= near * least) return;
      least = std::min(least, plan.seconds);
      found.push_back(std::move(plan));
    };
    const std::int64_t longest = std::max({problem_.m, problem_.n, problem_.k});
    const std::int64_t narrowest = group_.shortest_tile();
    if (uses(SpecialCase::square_panels))
      for (const std::int64_t tile : part_lengths(longest, narrowest))
        consider(tiles(tile, tile, tile, tile));
    for (const std::int64_t rows : part_lengths(problem_.m, narrowest))
      for (const std::int64_t cols : part_lengths(problem_.n, narrowest))
        for (const std::int64_t inner : part_lengths(problem_.k, narrowest))
          consider(tiles(rows, cols, inner, times_.full_run()));
    return nearest(std::move(found), near);
  }

 private:
  Grid grid_of(const ProductPlan& plan) const {
    return product_grid(group_.size(), plan.rows.count(), plan.cols.count());
  }

  /// Tiles of B as tall as a run that reaches its link's rate.
  ProductPlan tiles(std::int64_t rows, std::int64_t cols, std::int64_t inner,
                    std::int64_t tall) const {
    ProductPlan plan;
    plan.rows = {problem_.m, even_tile(group_, problem_.m, rows)};
    plan.cols = {problem_.n, even_tile(group_, problem_.n, cols)};
    plan.sum = {problem_.k, even_tile(group_, problem_.k, inner)};
    const std::int64_t steps = std::clamp<std::int64_t>(tall / plan.sum.tile, 1, plan.sum.count());
    plan.sum_of_b = {problem_.k, plan.sum.tile * steps};
    return plan;
  }

  /// What a device has to do, in bytes of tiles and seconds.
  struct Work {
    double rows, cols, deep;  ///< In tiles.
    double tiles_of_b;        ///< Of a column.
    double bytes_a, bytes_b, bytes_c;
    double load_a, load_b, load_c, store_c;
    double first;    ///< Until a first product can begin.
    double product;  ///< Of three tiles.
    /// A row of A's tiles, and one of the next.
    double row_of_a() const noexcept { return (deep + 1) * bytes_a; }
  };
  /// Tiles of B for each column: one in use, and part of the next.
  static constexpr double on_their_way = 1.5;

  Work work_of(const ProductPlan& plan) const {
    const Grid grid = grid_of(plan);
    const std::int64_t rows = plan.rows.tile;
    const std::int64_t cols = plan.cols.tile;
    const std::int64_t inner = plan.sum.tile;
    const std::int64_t tall = std::min(problem_.k, plan.sum_of_b.tile);
    const double element = times_.element_bytes();
    // A tile that several devices need crosses the host's link once, where devices forward it.
    const bool shared = times_.has_peers();
    const double copy_a = times_.copy(rows, inner, problem_.m);
    const double copy_b = times_.copy(tall, cols, problem_.k);
    const double copy_c = times_.copy(rows, cols, problem_.m);
    return {.rows = std::ceil(real(plan.rows.count()) / real(grid.rows)),
            .cols = std::ceil(real(plan.cols.count()) / real(grid.cols)),
            .deep = real(plan.sum.count()),
            .tiles_of_b = real(plan.sum_of_b.count()),
            .bytes_a = real(rows * inner) * element,
            .bytes_b = real(tall * cols) * element,
            .bytes_c = real(rows * cols) * element,
            .load_a = copy_a / real(shared ? grid.cols : 1),
            .load_b = copy_b / real(shared ? grid.rows : 1),
            .load_c = problem_.accumulate ? copy_c : 0,
            .store_c = copy_c,
            .first = copy_a + copy_b,
            .product = times_.product(rows, cols, inner)};
  }

  /// The most rows of A's tiles that stay, of panels that are nearly equal; 0: none.
  static double height_of(const Work& work, double memory) {
    constexpr double least_tiles = 8;  // What comes and goes needs room as well.
    if (std::max({work.bytes_a, work.bytes_b, work.bytes_c}) > memory / least_tiles) return 0;
    const double most = std::floor((memory - (2 + on_their_way) * work.bytes_b) /
                                   (work.row_of_a() + 2 * work.bytes_c));
    return most < 1 ? 0 : std::ceil(work.rows / std::ceil(work.rows / most));
  }

  /// Sets how many rows stay, and how many columns advance together at the start: as many as take
  /// as long as bringing these rows. Infinite if none fits.
  double panel_seconds(ProductPlan& plan) const {
    constexpr double share_of_memory = 0.97;
    const Work work = work_of(plan);
    const double memory = share_of_memory * static_cast<double>(group_.memory_bytes);
    const double height = height_of(work, memory);
    if (height < 1) return never_fits;
    const double room = memory - height * work.row_of_a() - 2 * work.bytes_b;
    // Tiles of C go home while others begin.
    const auto fit = [&](double tiles_of_b, double tiles_of_c) {
      return std::floor(room / (tiles_of_b * work.bytes_b + tiles_of_c * height * work.bytes_c));
    };
    const double load_panel = height * work.deep * work.load_a;
    const double load_column = work.tiles_of_b * work.load_b + height * work.load_c;
    const double store_column = height * work.store_c;
    const double column = height * work.deep * work.product;
    const double gain = column - load_column;
    const double enough = gain > 0 ? std::ceil(load_panel / gain) : work.cols;
    const double at_start = std::max(1.0, std::min({enough, fit(on_their_way, 1), work.cols}));
    plan.height = static_cast<std::int64_t>(height);
    plan.at_start = static_cast<std::int64_t>(at_start);
    const double start = std::max(0.0, load_panel - at_start * gain);
    const double change = std::max(0.0, load_panel - (2 * column - load_column));
    const double apart = fit(on_their_way, 2) < 2 ? store_column : 0;
    return work.first + start + (std::ceil(work.rows / height) - 1) * change + store_column +
           work.rows / height * work.cols * (apart + std::max({column, load_column, store_column}));
  }

  const ProductTimes& times_;
  const DeviceGroup& group_;
  const Problem& problem_;
};

}  // namespace

std::vector<ProductPlan> stream_plans(const ProductTimes& times, const DeviceGroup& group,
                                      const Problem& problem, double near) {
  return StreamPlanner(times, group, problem).best(near);
}

}  // namespace quadriga::linalg
