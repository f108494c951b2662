// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/product_plan.cpp: tries shapes of tiles by list schedules.
#include "linalg/product_plan.h"

#include "linalg/kernels/codelet_parts.h"
#include "linalg/tile_size.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace quadriga::linalg {
namespace {

std::string_view kernel_name(DType dtype) {
  return kernels::gemm_names[kernels::type_index(dtype)];
}

double real(std::int64_t count) noexcept { return static_cast<double>(count); }

std::int64_t parts(std::int64_t size, std::int64_t tile) noexcept {
  return (size + tile - 1) / tile;
}

/// Nearly equal tiles, as many as tiles of at most `tile` would be.
std::int64_t even(std::int64_t size, std::int64_t tile) noexcept {
  constexpr std::int64_t step = 64;
  const std::int64_t length = parts(size, parts(size, tile));
  return std::min(size, parts(length, step) * step);
}

/// Products at 5 TFLOP/s and more: square tiles that keep such a device busy come too late.
bool is_fast(const Engine& engine, const Team& team, DType dtype) {
  constexpr double order = 1024;
  constexpr double least_rate = 2.5e12;  // multiplications a second
  if (team.size() == 0) return false;
  const Machine& machine = engine.machine();
  const Device& device = machine.devices[team.devices.front()];
  const std::string_view name = kernel_name(dtype);
  if (!machine.has_kernel(device, name)) return false;
  const double volume = order * order * order;
  return volume / machine.kernel_seconds(device, name, order, volume) >= least_rate;
}

class Planner {
 public:
  Planner(const Engine& engine, const Team& team, const Problem& problem)
      : engine_(engine),
        team_(team),
        problem_(problem),
        element_(real(static_cast<std::int64_t>(size_of(problem.dtype)))) {
    if (team.size() < 2) return;
    const auto space = [&](std::int64_t place) {
      return engine.machine().devices[team.device(place)].space;
    };
    has_peers_ = engine.machine().route(space(0), space(1)) != nullptr;
  }

  /// The best plan; with rows 0 if none fits.
  ProductPlan best() {
    std::vector<Candidate> candidates;
    for (const std::int64_t rows : {1024, 2048, 4096, 8192, 16384})
      for (const std::int64_t cols : {512, 1024, 2048, 4096, 8192})
        add_depths(rows, cols, candidates);
    if (team_.resident) add_whole(candidates);
    // Planning must take no time beside a product of 30 ms: most shapes needn't be scheduled.
    std::ranges::stable_sort(candidates, {}, &Candidate::bound);
    ProductPlan best;
    double least = std::numeric_limits<double>::infinity();
    std::vector<Product> order;
    for (const Candidate& candidate : candidates) {
      if (candidate.bound >= least) break;
      const double seconds =
          candidate.start + list_products(candidate.plan.times, order, least - candidate.start);
      if (seconds >= least) continue;
      best = candidate.plan;
      best.seconds = least = seconds;
    }
    return best;
  }

  /// Where not all operands fit: the best plan whose rows of A's tiles do, or squares, whichever
  /// takes less; with rows 0 if neither can.
  ProductPlan best_of_few() const {
    ProductPlan best;
    double least = std::numeric_limits<double>::infinity();
    const auto consider = [&](const ProductPlan& plan, double seconds) {
      if (seconds >= least) return;
      best = plan;
      least = seconds;
    };
    for (const std::int64_t rows : {1024, 2048, 4096, 8192, 16384})
      for (const std::int64_t cols : {512, 1024, 2048})
        for (const std::int64_t inner : {512, 1024, 2048}) {
          ProductPlan plan = cut({rows, cols, inner, tall_where_it_streams});
          set_times(plan, grid_of(plan));
          plan.listed = false;
          consider(plan, panel_seconds(plan));
        }
    for (std::int64_t wanted = 4096; wanted >= 512; wanted -= 256) {
      ProductPlan plan;
      plan.rows = even(std::max({problem_.m, problem_.n, problem_.k}), wanted);
      plan.cols = plan.inner = plan.rows;
      consider(plan, square_seconds(plan.rows));
    }
    return best;
  }

 private:
  struct Candidate {
    ProductPlan plan;
    double start = 0;
    double bound = 0;  ///< Seconds that any schedule takes.
  };

  /// Sizes at most; `tall` is that of B's tiles.
  struct Sizes {
    std::int64_t rows;
    std::int64_t cols;
    std::int64_t inner;
    std::int64_t tall;
  };
  static constexpr std::int64_t tall_where_it_streams = 8192;

  void add_depths(std::int64_t rows, std::int64_t cols, std::vector<Candidate>& candidates) const {
    constexpr std::int64_t shortest = 2048;
    const std::int64_t tallest = std::min<std::int64_t>(problem_.k, 16384);
    for (const std::int64_t inner : {512, 1024, 2048, 4096, 8192})
      for (std::int64_t tall = inner; tall == inner || tall < 2 * tallest; tall *= 2)
        if (tall >= std::min(shortest, problem_.k)) add({rows, cols, inner, tall}, candidates);
  }

  /// The whole matrices as one product, or parts whose sizes fit the kernels' 32 bits.
  void add_whole(std::vector<Candidate>& candidates) const {
    constexpr std::int64_t longest = std::int64_t{1} << 30;
    const std::int64_t inner = std::min(problem_.k, longest);
    add({std::min(problem_.m, longest), std::min(problem_.n, longest), inner, inner}, candidates);
  }

  /// Unless there are too many products, or they don't fit. Times are those of the device with most
  /// to do.
  void add(const Sizes& sizes, std::vector<Candidate>& candidates) const {
    constexpr std::int64_t most_products = 512;
    ProductPlan plan = cut(sizes);
    const ListShape& times = plan.times;
    const std::int64_t products = times.rows.size() * times.cols.size() * times.inner;
    if (products > most_products || !fits(plan)) return;
    const Grid grid = grid_of(plan);
    set_times(plan, grid);
    const double start = start_seconds(plan, grid);
    candidates.push_back({plan, start, start + shortest(times)});
  }

  ProductPlan cut(const Sizes& sizes) const {
    ProductPlan plan;
    plan.rows = even(problem_.m, sizes.rows);
    plan.cols = even(problem_.n, sizes.cols);
    plan.inner = even(problem_.k, sizes.inner);
    plan.steps =
        std::clamp<std::int64_t>(sizes.tall / plan.inner, 1, parts(problem_.k, plan.inner));
    plan.listed = true;
    const Grid grid = grid_of(plan);
    plan.times.rows = {0, parts(parts(problem_.m, plan.rows), grid.rows)};
    plan.times.cols = {0, parts(parts(problem_.n, plan.cols), grid.cols)};
    plan.times.inner = parts(problem_.k, plan.inner);
    plan.times.steps = plan.steps;
    return plan;
  }

  Grid grid_of(const ProductPlan& plan) const {
    return product_grid(team_.size(), parts(problem_.m, plan.rows), parts(problem_.n, plan.cols));
  }

  /// Of a row of A's tiles that stays, and sets how many columns advance together where it changes:
  /// as many as take as long as bringing the next. Infinite if it doesn't fit.
  double panel_seconds(ProductPlan& plan) const {
    constexpr double share_of_memory = 0.97;
    constexpr double caution = 1.1;  // copies don't use the link all the time
    const ListShape& times = plan.times;
    const double deep = real(times.inner);
    const double tall = std::min(real(problem_.k), real(plan.inner * plan.steps));
    const double tile_of_a = real(plan.rows * plan.inner) * element_;
    const double tile_of_b = tall * real(plan.cols) * element_;
    const double tile_of_c = real(plan.rows * plan.cols) * element_;
    // Tiles of B come while the ones before are in use; those of C go home while others begin.
    const double room = share_of_memory * static_cast<double>(team_.memory_bytes) -
                        (deep + 1) * tile_of_a - 2 * tile_of_b;
    const double most_at_start = std::floor(room / (1.5 * tile_of_b + tile_of_c));
    const double most = std::floor(room / (1.5 * tile_of_b + 2 * tile_of_c));
    if (most < 1) return std::numeric_limits<double>::infinity();
    const double load_row = caution * deep * times.load_a;
    const double load_column =
        caution * (real(parts(times.inner, times.steps)) * times.load_b + times.load_c);
    const double column = deep * times.product;
    const double cols = real(times.cols.size());
    const auto columns = [&](double gain, double limit) {
      return std::max(1.0, std::min({gain > 0 ? std::ceil(load_row / gain) : cols, limit, cols}));
    };
    const double at_start = columns(column - load_column, most_at_start);
    const double together = columns(2 * column - load_column, std::min(most, (cols + 1) / 2));
    plan.at_start = static_cast<std::int64_t>(at_start);
    plan.together = static_cast<std::int64_t>(together);
    const double rows = real(times.rows.size());
    const double start = std::max(0.0, load_row + at_start * (load_column - column));
    const double change = std::max(0.0, load_row - together * (2 * column - load_column));
    return start + (rows - 1) * change + rows * cols * std::max(column, load_column);
  }

  /// Of squares: products or copies, whichever take longer, and what was measured beyond that;
  /// infinite if none fit. Panels of A stay as in ProductOrder.
  double square_seconds(std::int64_t tile) const {
    constexpr std::int64_t spare = 4;
    constexpr double caution = 1.2;
    constexpr double measured_loss = 1.13;  // order 32768 with 3.22 GB on an H200
    const double bytes = real(tile * tile) * element_;
    const Grid grid = product_grid(team_.size(), parts(problem_.m, tile), parts(problem_.n, tile));
    const std::int64_t rows = parts(parts(problem_.m, tile), grid.rows);
    const std::int64_t cols = parts(parts(problem_.n, tile), grid.cols);
    const std::int64_t inner = parts(problem_.k, tile);
    const std::int64_t height =
        std::min(rows, (team_.tiles(static_cast<std::size_t>(bytes)) - spare) / (inner + 2));
    if (height < 1) return std::numeric_limits<double>::infinity();
    const double copies =
        real(inner * (rows + cols * parts(rows, height))) * copy_seconds(tile, real(tile), 0);
    const double products =
        real(rows * cols * inner) *
        kernel_seconds(engine_, team_, name(), real(tile), std::pow(real(tile), 3));
    return measured_loss * std::max(products, caution * copies);
  }

  std::string_view name() const { return kernel_name(problem_.dtype); }

  /// No schedule takes less.
  static double shortest(const ListShape& times) {
    const double rows = real(times.rows.size());
    const double cols = real(times.cols.size());
    const double first = times.load_a + times.load_b + times.load_c;
    const double loads = rows * real(times.inner) * times.load_a +
                         cols * real(parts(times.inner, times.steps)) * times.load_b +
                         rows * cols * times.load_c;
    const double products = rows * cols * real(times.inner) * times.product;
    return std::max(first + products, loads + times.product) + times.store_c;
  }

  /// The first tiles are forwarded only when they have arrived: what that costs beyond the times.
  double start_seconds(const ProductPlan& plan, const Grid& grid) const {
    if (!has_peers_) return 0;
    return plan.times.load_a * real(grid.cols - 1) + plan.times.load_b * real(grid.rows - 1) +
           plan.times.load_a + plan.times.load_b;
  }

  bool fits(const ProductPlan& plan) const {
    constexpr double share_of_memory = 0.95;
    const double height = real(plan.times.rows.size() * plan.rows);
    const double width = real(plan.times.cols.size() * plan.cols);
    const double depth = real(plan.times.inner * plan.inner);
    const double elements = height * depth + depth * width + height * width;
    return elements * element_ <= share_of_memory * static_cast<double>(team_.memory_bytes);
  }

  void set_times(ProductPlan& plan, const Grid& grid) const {
    ListShape& times = plan.times;
    const double depth = std::min(real(problem_.k), real(plan.inner * plan.steps));
    times.product = product_seconds(plan);
    // A tile that several devices need crosses the host's link once, where devices forward it.
    times.load_a =
        copy_seconds(plan.rows, real(plan.inner), problem_.m) / real(has_peers_ ? grid.cols : 1);
    times.load_b = copy_seconds(static_cast<std::int64_t>(depth), real(plan.cols), problem_.k) /
                   real(has_peers_ ? grid.rows : 1);
    const double copy_c = copy_seconds(plan.rows, real(plan.cols), problem_.m);
    times.load_c = problem_.accumulate ? copy_c : 0;
    constexpr double both_ways = 1.09;  // what a link loses while loads go on
    times.store_c = both_ways * copy_c;
  }

  /// Short sums cost more than the table says of cubes as large: C is read and written for little.
  double product_seconds(const ProductPlan& plan) const {
    constexpr double launch_seconds = 3e-6;
    const double loss = 0.176 * std::pow(512 / real(plan.inner), 2.4);
    const double volume = real(plan.rows) * real(plan.cols) * real(plan.inner);
    return launch_seconds +
           (1 + loss) * kernel_seconds(engine_, team_, name(), std::cbrt(volume), volume);
  }

  double copy_seconds(std::int64_t rows, double cols, std::int64_t all_rows) const {
    const double run = real(rows) * element_;
    const double share = rows == all_rows ? 1 : team_.share_by_runs(run);
    return run * cols * team_.seconds_a_byte / share;
  }

  const Engine& engine_;
  const Team& team_;
  const Problem& problem_;
  double element_;
  bool has_peers_ = false;
};

}  // namespace

ProductPlan plan_product(const Engine& engine, const Team& team, const Problem& problem,
                         const Options& options) {
  const bool plans = options.tile == 0 && is_fast(engine, team, problem.dtype);
  ProductPlan plan;
  if (plans) plan = Planner(engine, team, problem).best();
  if (plans && plan.rows == 0) plan = Planner(engine, team, problem).best_of_few();
  if (plan.rows > 0) return plan;
  plan = {};
  plan.rows = plan.cols = plan.inner = tile_for(engine, problem, options);
  return plan;
}

}  // namespace quadriga::linalg
