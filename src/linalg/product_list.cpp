// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/product_list.cpp: tries shapes of tiles by list schedules, then smaller tiles where
// devices begin and end.
#include "device/reference_machine.h"
#include "linalg/product_rehearsal.h"
#include "linalg/product_search.h"
#include "linalg/real.h"
#include "linalg/special_cases.h"
#include "linalg/tile_trials.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace quadriga::linalg {
namespace {

constexpr std::int64_t most_counted = std::int64_t{1} << 30;  ///< That kernels count.
constexpr std::int64_t most_products = 512;  ///< Of a device: planning must take no time beside it.

std::int64_t products_of(const ListShape& shape) noexcept {
  return shape.rows.size() * shape.cols.size() * shape.inner;
}

/// Lengths, at most; `tall` is that of B's tiles.
struct Sizes {
  std::int64_t rows;
  std::int64_t cols;
  std::int64_t inner;
  std::int64_t tall;
};

/// Into how many pieces tiles are cut: of the columns that a device begins and ends with, and of
/// A's first column. Of three pieces one is half a tile long, the others a quarter.
struct Pieces {
  int head = 1;
  int tail = 1;
  int sum = 1;
};

/// Tiles in the order in which a device comes to them: in groups of as many as devices share them,
/// each device beginning a group with another, which it fetches from the host; the rest of the
/// group it gets from those others.
struct SharedOrder {
  Range all;
  std::int64_t sharers = 1;
  std::int64_t phase = 0;

  std::int64_t at(std::int64_t index) const noexcept {
    const std::int64_t group = index - index % sharers;
    const std::int64_t length = std::min(sharers, all.size() - group);
    return all.begin + group + (index - group + phase) % length;
  }
};

/// What a device computes: devices of a row of the grid share tiles of A, those of a column tiles
/// of B.
struct Place {
  SharedOrder rows;
  SharedOrder cols;
};

/// Cuts tilings into pieces of whole granules.
class Cutter {
 public:
  explicit Cutter(const DeviceGroup& group) : group_(group) {}

  /// The first and the last tile of each device's columns.
  Tiling columns(const Tiling& even, const Grid& grid, const Pieces& pieces) const {
    if (pieces.head <= 1 && pieces.tail <= 1) return even;
    Tiling fine = even;
    for (std::int64_t p = 0; p < grid.cols; ++p) {
      const Range cols = share(even.count(), grid.cols, p);
      for (std::int64_t j = cols.begin; j < cols.end; ++j)
        column(even.first(j), even.length(j), pieces, j == cols.begin, j + 1 == cols.end,
               fine.bounds);
    }
    fine.bounds.push_back(even.size);
    return fine;
  }

  Tiling sum(const Tiling& even, const Pieces& pieces) const {
    if (pieces.sum <= 1) return even;
    Tiling fine = even;
    again(0, even.length(0), pieces.sum, true, fine.bounds);
    for (std::int64_t k = 1; k < even.count(); ++k) fine.bounds.push_back(even.first(k));
    fine.bounds.push_back(even.size);
    return fine;
  }

 private:
  std::int64_t half_of(std::int64_t length) const { return group_.whole_below(length / 2); }
  bool is_worth_it(std::int64_t half) const { return half >= group_.shortest_tile(); }

  void column(std::int64_t first, std::int64_t length, const Pieces& pieces, bool begins, bool ends,
              std::vector<std::int64_t>& bounds) const {
    const std::int64_t half = half_of(length);
    if (begins && ends && pieces.head > 1 && pieces.tail > 1 && is_worth_it(half)) {
      again(first, half, pieces.head - 1, true, bounds);
      again(first + half, length - half, pieces.tail - 1, false, bounds);
    } else if (begins && pieces.head > 1) {
      again(first, length, pieces.head, true, bounds);
    } else {
      again(first, length, ends ? pieces.tail : 1, false, bounds);
    }
  }

  /// Appends where pieces of a tile begin, the shortest first or last.
  void again(std::int64_t first, std::int64_t length, int pieces, bool shortest_first,
             std::vector<std::int64_t>& bounds) const {
    const std::int64_t half = half_of(length);
    if (pieces <= 1 || !is_worth_it(half)) {
      bounds.push_back(first);
    } else if (shortest_first) {
      again(first, half, pieces - 1, true, bounds);
      bounds.push_back(first + half);
    } else {
      bounds.push_back(first);
      again(first + length - half, half, pieces - 1, false, bounds);
    }
  }

  const DeviceGroup& group_;
};

class ListPlanner {
 public:
  ListPlanner(const ProductTimes& times, const DeviceGroup& group, const Problem& problem)
      : times_(times), group_(group), problem_(problem) {}

  std::vector<ProductPlan> best(double near) {
    const std::int64_t least = group_.shortest_tile();
    for (const std::int64_t rows : part_lengths(problem_.m, least))
      for (const std::int64_t cols : part_lengths(problem_.n, least)) add_depths(rows, cols);
    if (group_.resident) add_whole();
    // Planning must take no time beside a product of 30 ms: most shapes needn't be scheduled.
    std::ranges::stable_sort(candidates_, {}, &Candidate::bound);
    for (const Candidate& candidate : candidates_) {
      if (candidate.bound >= tolerance() * best_.seconds) break;
      consider(candidate.sizes, {});
    }
    if (best_.seconds == endless) return {};
    if (!group_.resident && uses(SpecialCase::pieces)) add_pieces();
    if (group_.size() < 2) return {with_orders(std::move(best_.plan))};
    return nearest(rehearsed(near), near);
  }

  /// The best by what all devices together make of them, of as many of those found as there is time
  /// for beside the product itself.
  std::vector<ProductPlan> rehearsed(double near) {
    constexpr std::size_t least = 16;
    constexpr double share_of_time = 0.25;
    const double seconds_a_product = planning_cost(times_.machine()).product_seconds;
    std::ranges::stable_sort(found_, {}, &Found::seconds);
    HomeLinks home_links(times_.machine(), group_);
    double left = share_of_time * found_.front().seconds;
    std::vector<ProductPlan> plans;
    double best = endless;
    const auto consider = [&](ProductPlan plan) {
      plan.seconds = rehearse(times_, home_links, problem_, plan, near * best);
      if (plan.seconds >= near * best) return;
      best = std::min(best, plan.seconds);
      plans.push_back(std::move(plan));
    };
    std::size_t rehearsed = 0;
    for (Found& each : found_) {
      ProductPlan plan = with_orders(std::move(each.plan));
      left -= seconds_a_product * real(plan.rows.count() * plan.cols.count() * plan.sum.count());
      consider(std::move(plan));
      if (++rehearsed >= least && left <= 0) break;
    }
    return plans;
  }

  /// Devices whose parts are alike have one order, of other tiles.
  ProductPlan with_orders(ProductPlan plan) {
    const Grid grid = grid_of(plan);
    plan.orders.clear();
    std::vector<std::pair<ListShape, std::vector<Product>>> known;
    for (std::int64_t p = 0; p < group_.size(); ++p) {
      const Place at = place_of(plan, grid, p);
      const ListShape shape = shape_of(plan, grid, p);
      auto found = std::ranges::find(known, shape, &decltype(known)::value_type::first);
      if (found == known.end()) {
        known.emplace_back(shape, std::vector<Product>());
        found = known.end() - 1;
        list_products(shape, found->second);
      }
      order_ = found->second;
      for (Product& product : order_) {
        product.i = static_cast<std::int32_t>(at.rows.at(product.i));
        product.j = static_cast<std::int32_t>(at.cols.at(product.j));
      }
      plan.orders.push_back(std::move(order_));
    }
    return plan;
  }

 private:
  struct Candidate {
    Sizes sizes;
    double bound;  ///< Seconds that any schedule takes.
  };

  struct Found {
    ProductPlan plan;
    Sizes sizes{};
    Pieces pieces;
    double seconds = endless;
  };

  void add_depths(std::int64_t rows, std::int64_t cols) {
    for (const std::int64_t inner : part_lengths(problem_.k, group_.shortest_tile()))
      for (std::int64_t tall = inner; tall < 2 * problem_.k; tall *= 2)
        add({rows, cols, inner, tall});
  }

  /// The whole matrices as one product, or parts whose sizes fit the kernels' 32 bits.
  void add_whole() {
    const std::int64_t inner = std::min(problem_.k, most_counted);
    add({std::min(problem_.m, most_counted), std::min(problem_.n, most_counted), inner, inner});
  }

  /// Unless there are too many products, or they don't fit, or a length doesn't fit 32 bits.
  void add(const Sizes& sizes) {
    if (std::max({sizes.rows, sizes.cols, std::min(sizes.tall, problem_.k)}) > most_counted) return;
    const ProductPlan plan = cut(sizes, {});
    const Grid grid = grid_of(plan);
    const ListShape shape = shape_of(plan, grid, last());
    if (products_of(shape) > most_products || !fits(plan, grid)) return;
    candidates_.push_back({sizes, shortest(shape)});
  }

  ProductPlan cut(const Sizes& sizes, const Pieces& pieces) const {
    ProductPlan plan;
    plan.rows = {problem_.m, even_tile(group_, problem_.m, sizes.rows)};
    plan.cols = {problem_.n, even_tile(group_, problem_.n, sizes.cols)};
    plan.sum = {problem_.k, even_tile(group_, problem_.k, sizes.inner)};
    const std::int64_t steps =
        std::clamp<std::int64_t>(sizes.tall / plan.sum.tile, 1, plan.sum.count());
    plan.sum_of_b = {problem_.k, plan.sum.tile * steps};
    const Cutter cutter(group_);
    plan.cols = cutter.columns(plan.cols, grid_of(plan), pieces);
    plan.sum = cutter.sum(plan.sum, pieces);
    return plan;
  }

  /// Of tiles before they are cut into pieces.
  Grid grid_of(const ProductPlan& plan) const {
    const Tiling cols{problem_.n, plan.cols.tile};
    return product_grid(group_.size(), plan.rows.count(), cols.count());
  }

  static Place place_of(const ProductPlan& plan, const Grid& grid, std::int64_t place) {
    const std::int64_t down = place / grid.cols;
    const std::int64_t right = place % grid.cols;
    const Tiling even{plan.cols.size, plan.cols.tile};
    const Range cols = share(even.count(), grid.cols, right);
    const auto fine = [&](std::int64_t col) {
      return col == even.count() ? plan.cols.count() : plan.cols.holder(even.first(col));
    };
    return {{share(plan.rows.count(), grid.rows, down), grid.cols, right},
            {{fine(cols.begin), fine(cols.end)}, grid.rows, down}};
  }

  /// The device with most to do.
  std::int64_t last() const { return group_.size() - 1; }

  /// The products of one device, in places of its sequences.
  ListShape shape_of(const ProductPlan& plan, const Grid& grid, std::int64_t place) const {
    const Place at = place_of(plan, grid, place);
    ListShape shape;
    shape.rows = {0, at.rows.all.size()};
    shape.cols = {0, at.cols.all.size()};
    shape.inner = plan.sum.count();
    shape.steps = plan.sum_of_b.tile / plan.sum.tile;
    const std::int64_t rows = plan.rows.tile;
    const std::int64_t cols = plan.cols.tile;
    const std::int64_t depth = std::min(problem_.k, plan.sum_of_b.tile);
    shape.product = times_.product(rows, cols, plan.sum.tile);
    // A tile that several devices need crosses the host's link once, where devices forward it.
    const bool shared = times_.has_peers();
    shape.sharers_a = shared ? grid.cols : 1;
    shape.sharers_b = shared ? grid.rows : 1;
    shape.load_a = times_.copy(rows, plan.sum.tile, problem_.m) / real(shape.sharers_a);
    shape.load_b = times_.copy(depth, cols, problem_.k) / real(shape.sharers_b);
    const double copy_c = times_.copy(rows, cols, problem_.m);
    shape.load_c = problem_.accumulate ? copy_c : 0;
    shape.store_c = copy_c;
    if (!plan.cols.bounds.empty() || !plan.sum.bounds.empty()) set_lengths(plan, at.cols, shape);
    return shape;
  }

  void set_lengths(const ProductPlan& plan, const SharedOrder& cols, ListShape& shape) const {
    for (std::int64_t j = 0; j < shape.cols.size(); ++j)
      shape.widths.push_back(real(plan.cols.length(cols.at(j))) / real(plan.cols.tile));
    for (std::int64_t k = 0; k < shape.inner; ++k)
      shape.depths.push_back(real(plan.sum.length(k)) / real(plan.sum.tile));
    for (const double depth : shape.depths)
      for (const double width : shape.widths) shape.products.push_back(seconds(plan, width, depth));
  }

  double seconds(const ProductPlan& plan, double width, double depth) const {
    const auto part = [](std::int64_t length, double share) {
      return std::max<std::int64_t>(1, static_cast<std::int64_t>(real(length) * share + 0.5));
    };
    return times_.product(plan.rows.tile, part(plan.cols.tile, width), part(plan.sum.tile, depth));
  }

  /// No schedule takes less.
  static double shortest(const ListShape& shape) {
    const double rows = real(shape.rows.size());
    const double cols = real(shape.cols.size());
    const double inner = real(shape.inner);
    const double first =
        real(shape.sharers_a) * shape.load_a + real(shape.sharers_b) * shape.load_b + shape.load_c;
    const double tiles_of_b = std::ceil(inner / real(shape.steps));
    const double loads =
        rows * inner * shape.load_a + cols * tiles_of_b * shape.load_b + rows * cols * shape.load_c;
    const double products = rows * cols * inner * shape.product;
    return std::max(first + products, loads + shape.product) + shape.store_c;
  }

  /// Devices never end together; by stealing they come as near as half a tile of C, the last one.
  double spread_seconds(const ProductPlan& plan, const ListShape& shape) const {
    if (group_.size() < 2) return 0;
    const double width = shape.widths.empty() ? 1 : shape.widths.back();
    double whole_sum = 0;
    for (std::int64_t k = 0; k < shape.inner; ++k)
      whole_sum += seconds(plan, width,
                           shape.depths.empty() ? 1 : shape.depths[static_cast<std::size_t>(k)]);
    return whole_sum / 2;
  }

  /// All that the device with most to do needs.
  bool fits(const ProductPlan& plan, const Grid& grid) const {
    constexpr double share_of_memory = 0.95;
    const Place at = place_of(plan, grid, last());
    const auto length = [](const Tiling& tiling, const Range& range) {
      const std::int64_t end = range.end == tiling.count() ? tiling.size : tiling.first(range.end);
      return real(end - tiling.first(range.begin));
    };
    const double height = length(plan.rows, at.rows.all);
    const double width = length(plan.cols, at.cols.all);
    const double depth = real(problem_.k);
    const double elements = height * depth + depth * width + height * width;
    return elements * times_.element_bytes() <=
           share_of_memory * static_cast<double>(group_.memory_bytes);
  }

  /// How much more than the best a plan may seem to take to be rehearsed: the list schedule of one
  /// device knows of others only that they share links.
  double tolerance() const { return group_.size() < 2 ? 1 : 1.2; }

  void consider(const Sizes& sizes, const Pieces& pieces) {
    ProductPlan plan = cut(sizes, pieces);
    const Grid grid = grid_of(plan);
    if (!fits(plan, grid)) return;
    const ListShape shape = shape_of(plan, grid, last());
    const double apart = spread_seconds(plan, shape);
    const double limit = tolerance() * best_.seconds;
    const double seconds = apart + list_products(shape, order_, limit - apart);
    if (seconds >= limit) return;
    plan.seconds = seconds;
    found_.push_back({plan, sizes, pieces, seconds});
    if (seconds < best_.seconds) best_ = {std::move(plan), sizes, pieces, seconds};
  }

  /// Smaller tiles where a device begins and ends let it begin and end sooner; the others may be
  /// larger then.
  void add_pieces() {
    const Sizes even = best_.sizes;
    for (const std::int64_t cols : {even.cols, 2 * even.cols})
      for (const std::int64_t inner : {even.inner, 2 * even.inner})
        for (const int sum : {1, 2, 3})
          for (const int head : {1, 3})
            consider({even.rows, cols, inner, std::max(inner, even.tall)}, {head, 3, sum});
    for (const int head : {1, 2, 4})
      consider(best_.sizes, {head, best_.pieces.tail, best_.pieces.sum});
    for (const int tail : {1, 2, 4, 5, 6})
      consider(best_.sizes, {best_.pieces.head, tail, best_.pieces.sum});
  }

  const ProductTimes& times_;
  const DeviceGroup& group_;
  const Problem& problem_;
  std::vector<Candidate> candidates_;
  std::vector<Product> order_;
  std::vector<Found> found_;
  Found best_;
};

}  // namespace

void share_plan(const ProductTimes& times, const DeviceGroup& group, const Problem& problem,
                ProductPlan& plan) {
  plan = ListPlanner(times, group, problem).with_orders(std::move(plan));
}

std::vector<ProductPlan> list_plans(const ProductTimes& times, const DeviceGroup& group,
                                    const Problem& problem, double near) {
  return ListPlanner(times, group, problem).best(near);
}

}  // namespace quadriga::linalg
