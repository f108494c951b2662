// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/product_stream.cpp: plans of products whose operands don't fit: a row of A stays while
// B and C stream past, or squares.
#include "linalg/product_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace quadriga::linalg {
namespace {

constexpr double never_fits = std::numeric_limits<double>::infinity();

double real(std::int64_t count) noexcept { return static_cast<double>(count); }

class StreamPlanner {
 public:
  StreamPlanner(const ProductTimes& times, const Team& team, const Problem& problem)
      : times_(times), team_(team), problem_(problem) {}

  std::optional<ProductPlan> best() const {
    std::optional<ProductPlan> best;
    double least = never_fits;
    const auto consider = [&](const ProductPlan& plan, double seconds) {
      if (seconds >= least) return;
      best = plan;
      best->seconds = least = seconds;
    };
    for (const std::int64_t rows : {1024, 2048, 4096, 8192, 16384})
      for (const std::int64_t cols : {512, 1024, 2048})
        for (const std::int64_t inner : {512, 1024, 2048}) {
          ProductPlan plan = rows_that_stay(rows, cols, inner);
          const double seconds = panel_seconds(plan);
          consider(plan, seconds);
        }
    for (std::int64_t wanted = 4096; wanted >= 512; wanted -= 256) {
      const ProductPlan plan = squares(wanted);
      consider(plan, square_seconds(plan));
    }
    return best;
  }

 private:
  Grid grid_of(const ProductPlan& plan) const {
    return product_grid(team_.size(), plan.rows.count(), plan.cols.count());
  }

  ProductPlan rows_that_stay(std::int64_t rows, std::int64_t cols, std::int64_t inner) const {
    constexpr std::int64_t tallest = 8192;
    ProductPlan plan;
    plan.rows = {problem_.m, even_tile(problem_.m, rows)};
    plan.cols = {problem_.n, even_tile(problem_.n, cols)};
    plan.sum = {problem_.k, even_tile(problem_.k, inner)};
    const std::int64_t steps =
        std::clamp<std::int64_t>(tallest / plan.sum.tile, 1, plan.sum.count());
    plan.sum_of_b = {problem_.k, plan.sum.tile * steps};
    return plan;
  }

  ProductPlan squares(std::int64_t wanted) const {
    const std::int64_t longest = std::max({problem_.m, problem_.n, problem_.k});
    const std::int64_t tile = even_tile(longest, wanted);
    ProductPlan plan;
    plan.rows = {problem_.m, tile};
    plan.cols = {problem_.n, tile};
    plan.sum = plan.sum_of_b = {problem_.k, tile};
    return plan;
  }

  /// Of a row of A's tiles that stays, and sets how many columns advance together where it changes:
  /// as many as take as long as bringing the next. Infinite if it doesn't fit.
  double panel_seconds(ProductPlan& plan) const {
    constexpr double share_of_memory = 0.97;
    constexpr double caution = 1.1;  // copies don't use the link all the time
    const Grid grid = grid_of(plan);
    const double rows = std::ceil(real(plan.rows.count()) / real(grid.rows));
    const double cols = std::ceil(real(plan.cols.count()) / real(grid.cols));
    const double deep = real(plan.sum.count());
    const std::int64_t tall = std::min(problem_.k, plan.sum_of_b.tile);
    const double element = times_.element_bytes();
    const double tile_of_a = real(plan.rows.tile * plan.sum.tile) * element;
    const double tile_of_b = real(tall * plan.cols.tile) * element;
    const double tile_of_c = real(plan.rows.tile * plan.cols.tile) * element;
    // Tiles of B come while the ones before are in use; those of C go home while others begin.
    const double room = share_of_memory * static_cast<double>(team_.memory_bytes) -
                        (deep + 1) * tile_of_a - 2 * tile_of_b;
    const double most_at_start = std::floor(room / (1.5 * tile_of_b + tile_of_c));
    const double most = std::floor(room / (1.5 * tile_of_b + 2 * tile_of_c));
    if (most < 1) return never_fits;
    const double shared_a = real(times_.has_peers() ? grid.cols : 1);
    const double shared_b = real(times_.has_peers() ? grid.rows : 1);
    const double load_row =
        caution * deep / shared_a * times_.copy(plan.rows.tile, plan.sum.tile, problem_.m);
    const double load_b = times_.copy(tall, plan.cols.tile, problem_.k) / shared_b;
    const double load_c =
        problem_.accumulate ? times_.copy(plan.rows.tile, plan.cols.tile, problem_.m) : 0;
    const double load_column = caution * (real(plan.sum_of_b.count()) * load_b + load_c);
    const double column = deep * times_.product(plan.rows.tile, plan.cols.tile, plan.sum.tile);
    const auto columns = [&](double gain, double limit) {
      return std::max(1.0, std::min({gain > 0 ? std::ceil(load_row / gain) : cols, limit, cols}));
    };
    const double at_start = columns(column - load_column, most_at_start);
    const double together = columns(2 * column - load_column, std::min(most, (cols + 1) / 2));
    plan.at_start = static_cast<std::int64_t>(at_start);
    plan.together = static_cast<std::int64_t>(together);
    const double start = std::max(0.0, load_row + at_start * (load_column - column));
    const double change = std::max(0.0, load_row - together * (2 * column - load_column));
    return start + (rows - 1) * change + rows * cols * std::max(column, load_column);
  }

  /// Of squares: products or copies, whichever take longer, and what was measured beyond that;
  /// infinite if none fit. Panels of A stay as in ProductOrder.
  double square_seconds(const ProductPlan& plan) const {
    constexpr std::int64_t spare = 4;
    constexpr double caution = 1.2;
    constexpr double measured_loss = 1.13;  // order 32768 with 3.22 GB on an H200
    const std::int64_t tile = plan.rows.tile;
    const auto up = [](std::int64_t count, std::int64_t parts) {
      return (count + parts - 1) / parts;
    };
    const Grid grid = grid_of(plan);
    const std::int64_t rows = up(plan.rows.count(), grid.rows);
    const std::int64_t cols = up(plan.cols.count(), grid.cols);
    const std::int64_t inner = plan.sum.count();
    const double bytes = real(tile * tile) * times_.element_bytes();
    const std::int64_t height =
        std::min(rows, (team_.tiles(static_cast<std::size_t>(bytes)) - spare) / (inner + 2));
    if (height < 1) return never_fits;
    const double copies =
        real(inner * (rows + cols * up(rows, height))) * times_.copy(tile, tile, 0);
    const double products = real(rows * cols * inner) * times_.square(tile);
    return measured_loss * std::max(products, caution * copies);
  }

  const ProductTimes& times_;
  const Team& team_;
  const Problem& problem_;
};

}  // namespace

std::optional<ProductPlan> stream_plan(const ProductTimes& times, const Team& team,
                                       const Problem& problem) {
  return StreamPlanner(times, team, problem).best();
}

}  // namespace quadriga::linalg
