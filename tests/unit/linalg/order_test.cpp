// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/linalg/order_test.cpp: orders are complete, keep each tile's updates in line, and move
// little.
#include "linalg/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace quadriga::linalg::testing {
namespace {

template <class Shape = ProductShape>
std::vector<Product> all_products(const Shape& shape) {
  ProductOrder order(shape);
  std::vector<Product> all;
  Product next;
  while (order.next(next)) all.push_back(next);
  EXPECT_FALSE(order.next(next)) << "once there is none";
  return all;
}

void expect_complete(const ProductShape& shape, const std::vector<Product>& order) {
  ASSERT_EQ(static_cast<std::int64_t>(order.size()),
            shape.rows.size() * shape.cols.size() * shape.inner);
  std::map<std::pair<int, int>, int> next;
  for (const Product& product : order) {
    ASSERT_TRUE(product.i >= shape.rows.begin && product.i < shape.rows.end);
    ASSERT_TRUE(product.j >= shape.cols.begin && product.j < shape.cols.end);
    const int expected = next[{product.i, product.j}]++;
    ASSERT_EQ(product.k, expected) << "tile " << product.i << ", " << product.j;
  }
}

/// Tiles of A, B and C that a device of so many tiles brings, when what is used last leaves first.
std::int64_t loads(const std::vector<Product>& order, std::int64_t memory) {
  using Name = std::tuple<char, int, int>;
  std::map<Name, std::vector<std::size_t>> uses;
  const auto names = [](const Product& p) {
    return std::array{Name{'a', p.i, p.k}, Name{'b', p.k, p.j}, Name{'c', p.i, p.j}};
  };
  for (std::size_t at = 0; at < order.size(); ++at)
    for (const Name& name : names(order[at])) uses[name].push_back(at);
  std::map<Name, std::size_t> cursor;
  std::set<std::pair<std::size_t, Name>> here;  // by next use
  std::map<Name, std::size_t> next_use;
  std::int64_t count = 0;
  for (std::size_t at = 0; at < order.size(); ++at) {
    for (const Name& name : names(order[at])) {
      const auto found = next_use.find(name);
      if (found == next_use.end()) {
        ++count;
        if (static_cast<std::int64_t>(here.size()) == memory) {
          next_use.erase(std::prev(here.end())->second);
          here.erase(std::prev(here.end()));
        }
      } else {
        here.erase({found->second, name});
      }
      const std::size_t used = ++cursor[name];
      next_use[name] = used < uses[name].size() ? uses[name][used] : SIZE_MAX;
      here.insert({next_use[name], name});
    }
  }
  return count;
}

TEST(ProductOrder, IsCompleteAndKeepsUpdatesInLine) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 300; ++trial) {
    SCOPED_TRACE(trial);
    const auto below = [&](int most) { return static_cast<std::int64_t>(random() % most); };
    ProductShape shape;
    shape.rows = {below(5), 5 + below(12)};
    shape.cols = {below(5), 5 + below(12)};
    shape.inner = 1 + below(20);
    shape.memory = trial % 10 == 0 ? 0 : 1 + below(trial % 3 == 0 ? 20 : 400);
    shape.load_ratio = static_cast<double>(below(600)) / 100;
    expect_complete(shape, all_products(shape));
  }
}

TEST(ProductOrder, OfNothing) {
  EXPECT_TRUE(all_products({{0, 0}, {0, 3}, 4, 10, 1}).empty());
  EXPECT_TRUE(all_products({{0, 2}, {3, 3}, 4, 10, 1}).empty());
  EXPECT_TRUE(all_products({{0, 2}, {0, 3}, 0, 10, 1}).empty());
}

TEST(ProductOrder, MovesWhatItMustIfAPanelFits) {
  const ProductShape square{{0, 16}, {0, 16}, 16, 335, 0.2};
  EXPECT_EQ(loads(all_products(square), square.memory), 3 * 256);
  const ProductShape tall{{0, 64}, {0, 8}, 8, 100, 0.2};  // a panel of B's columns stays
  EXPECT_EQ(loads(all_products(tall), tall.memory), 2 * 64 * 8 + 64);
}

TEST(ProductOrder, TwoPanelsWhereOneDoesNotFit) {
  const ProductShape shape{{0, 16}, {0, 16}, 16, 192, 2.2};
  EXPECT_LE(loads(all_products(shape), shape.memory), 4 * 256 - 16);
}

TEST(ProductOrder, BlocksOfCWhereTheSumIsLong) {
  const ProductShape shape{{0, 40}, {0, 40}, 100, 450, 0.3};
  // Blocks of 20 x 20: A and B are brought twice; panels of A would bring B ten times.
  EXPECT_LE(loads(all_products(shape), shape.memory), 2 * 2 * 4000 + 1600 + 400);
}

TEST(ProductOrder, ABoxGrowsWhereTheLinkIsTheLimit) {
  const ProductShape shape{{0, 16}, {0, 16}, 16, 192, 2.2};
  const std::vector<Product> order = all_products(shape);
  std::set<std::tuple<char, int, int>> brought;
  std::int64_t products = 0;
  double idle = 0;  // in times of a product
  double now = 0;
  for (const Product& p : order) {
    brought.insert({'a', p.i, p.k});
    brought.insert({'b', p.k, p.j});
    brought.insert({'c', p.i, p.j});
    const double arrived = static_cast<double>(brought.size()) * shape.load_ratio;
    idle += std::max(0.0, arrived - now);
    now = std::max(now, arrived) + 1;
    if (++products == 600) break;
  }
  EXPECT_LE(idle, 60) << "a growing cube waits for about 45 products";
}

TEST(ListProducts, AreCompleteAndKeepUpdatesInLine) {
  std::mt19937_64 random(2);
  for (int trial = 0; trial < 200; ++trial) {
    SCOPED_TRACE(trial);
    const auto below = [&](int most) { return static_cast<std::int64_t>(random() % most); };
    ListShape list;
    list.rows = {below(3), 3 + below(6)};
    list.cols = {below(3), 3 + below(9)};
    list.inner = 1 + below(12);
    list.steps = 1 + below(6);
    list.load_a = static_cast<double>(1 + below(50)) / 10;
    list.load_b = static_cast<double>(1 + below(50)) / 10;
    list.load_c = trial % 2 == 0 ? 0 : 1;
    list.store_c = static_cast<double>(below(30)) / 10;
    std::vector<Product> order;
    const double end = list_products(list, order);
    expect_complete({list.rows, list.cols, list.inner}, order);
    const auto products = static_cast<double>(order.size());
    EXPECT_GE(end, (products + list.load_a + list.load_b + list.store_c) * (1 - 1e-12));
    EXPECT_LE(end, products * (1 + list.load_a + list.load_b + list.load_c + list.store_c) + 100);
  }
  std::vector<Product> none;
  EXPECT_EQ(list_products({{0, 0}, {0, 3}, 2}, none), 0);
  EXPECT_TRUE(none.empty());
}

// In parts of the longest tile; short sums are ended sooner and narrow columns brought sooner.
TEST(ListProducts, OfUnevenTilesAreCompleteAndTakeTheirOwnTimes) {
  std::mt19937_64 random(4);
  for (int trial = 0; trial < 200; ++trial) {
    SCOPED_TRACE(trial);
    const auto below = [&](int most) { return static_cast<std::int64_t>(random() % most); };
    ListShape list;
    list.rows = {0, 1 + below(5)};
    list.cols = {0, 1 + below(9)};
    list.inner = 1 + below(8);
    list.steps = 1 + below(3);
    list.sharers_a = 1 + below(3);
    list.sharers_b = 1 + below(3);
    list.load_a = list.load_b = list.store_c = 1;
    const auto lengths = [&](std::int64_t count) {
      std::vector<double> made(static_cast<std::size_t>(count));
      for (double& length : made) length = static_cast<double>(1 + below(4)) / 4;
      return made;
    };
    list.widths = lengths(list.cols.size());
    list.depths = lengths(list.inner);
    double work = 0;
    for (const double depth : list.depths)
      for (const double width : list.widths) {
        list.products.push_back(depth * width);
        work += static_cast<double>(list.rows.size()) * depth * width;
      }
    std::vector<Product> order;
    const double end = list_products(list, order);
    expect_complete({list.rows, list.cols, list.inner}, order);
    const double narrowest = *std::ranges::min_element(list.widths);
    EXPECT_GE(end, work + narrowest + list.depths.front());
  }
}

TEST(ListProducts, SmallTilesAtBothEndsSaveWhatTheDeviceAndTheLinkIdle) {
  ListShape even{{0, 1}, {0, 8}, 8, 8, 1, 1, 1, 0, 1};
  std::vector<Product> order;
  const double before = list_products(even, order);
  ListShape uneven = even;
  uneven.cols.end = 10;
  uneven.inner = 9;
  uneven.widths = {0.5, 0.5, 1, 1, 1, 1, 1, 1, 0.5, 0.5};
  uneven.depths = {0.5, 0.5, 1, 1, 1, 1, 1, 1, 1};
  for (const double depth : uneven.depths)
    for (const double width : uneven.widths) uneven.products.push_back(depth * width);
  EXPECT_LE(list_products(uneven, order), before - 0.5);
}

TEST(ListProducts, WhatOthersBringCostsNothing) {
  // Both need both rows and one brings each: the second is there with the first.
  ListShape list{{0, 2}, {0, 1}, 4, 4, 1, 2, 0.5, 0, 0.5};
  list.sharers_a = 2;
  std::vector<Product> order;
  list_products(list, order);
  EXPECT_EQ(order[0], (Product{0, 0, 0}));
  EXPECT_EQ(order[1], (Product{1, 0, 0}));
}

TEST(ListProducts, EndBeforeTheirLimitOrNotAtAll) {
  const ListShape list{{0, 3}, {0, 4}, 5, 2, 1, 2, 0.5, 0, 1};
  std::vector<Product> order;
  std::vector<Product> limited;
  const double end = list_products(list, order);
  EXPECT_EQ(list_products(list, limited, end), end);
  EXPECT_TRUE(limited.empty());
  EXPECT_EQ(list_products(list, limited, end * (1 + 1e-12)), end);
  EXPECT_EQ(limited.size(), order.size());
}

TEST(ListProducts, OverlapCopiesAndGoHomeAsTheyAreDone) {
  // A product of order 8192 on a device of 50 TFLOP/s and 55 GB/s, in ms; the link takes 19.5 in.
  ListShape list{{0, 1}, {0, 16}, 8, 8, 0.172, 1.22, 0.61, 0, 0.61};
  std::vector<Product> order;
  EXPECT_LE(list_products(list, order), 29.5);
  // With copies at no cost columns follow each other.
  list.load_a = list.load_b = 1e-9;
  list_products(list, order);
  for (std::size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i].j, static_cast<int>(i / 8));
}

TEST(ProductOrder, PanelsAreCompleteAndChangeTileByTile) {
  std::mt19937_64 random(3);
  for (int trial = 0; trial < 200; ++trial) {
    SCOPED_TRACE(trial);
    const auto below = [&](int most) { return static_cast<std::int64_t>(random() % most); };
    PanelShape panels;
    panels.rows = {below(3), 3 + below(4)};
    panels.cols = {below(3), 3 + below(9)};
    panels.inner = 1 + below(8);
    panels.at_start = below(12);
    panels.grows = trial % 2 == 0;
    const std::vector<Product> order = all_products(panels);
    expect_complete({panels.rows, panels.cols, panels.inner}, order);
    // No tile of A comes back once another row has begun to take its place.
    std::set<std::pair<int, int>> over;
    for (const Product& p : order) {
      ASSERT_FALSE(over.contains({p.i, p.k})) << p.i << ' ' << p.k;
      over.insert({p.i - 1, p.k});
    }
  }
  EXPECT_TRUE(all_products(PanelShape{{0, 0}, {0, 3}, 2}).empty());
}

TEST(ProductOrder, ColumnsAdvanceTogetherAtTheStartOnly) {
  const std::vector<Product> expected{
      {0, 0, 0}, {0, 1, 0}, {0, 2, 0}, {0, 0, 1}, {0, 1, 1}, {0, 2, 1},  // three at the start
      {0, 3, 0}, {0, 3, 1}, {1, 3, 0}, {1, 3, 1},                        // the change
      {1, 2, 0}, {1, 2, 1}, {1, 1, 0}, {1, 1, 1}, {1, 0, 0}, {1, 0, 1}};
  EXPECT_EQ(all_products(PanelShape{{0, 2}, {0, 4}, 2, 3, 1}), expected);
}

TEST(ProductOrder, EndsWithOneTileOfCAfterTheOther) {
  const std::vector<Product> expected{{0, 0, 0}, {1, 0, 0}, {0, 0, 1}, {1, 0, 1},
                                      {0, 1, 0}, {0, 1, 1}, {1, 1, 0}, {1, 1, 1}};
  EXPECT_EQ(all_products(PanelShape{{0, 2}, {0, 2}, 2, 1, 2}), expected);
}

TEST(ProductOrder, GivesAListAsItIs) {
  const std::vector<Product> listed{{1, 0, 0}, {0, 0, 0}, {1, 0, 1}};
  EXPECT_EQ(all_products(listed), listed);
}

TEST(ProductGrid, DividesSoThatDevicesLoadLeast) {
  const auto grid = [](std::int64_t devices, std::int64_t rows, std::int64_t cols) {
    const Grid best = product_grid(devices, rows, cols);
    return std::pair(best.rows, best.cols);
  };
  EXPECT_EQ(grid(4, 16, 16), std::pair(std::int64_t{2}, std::int64_t{2}));
  EXPECT_EQ(grid(8, 64, 4).first, 8);
  EXPECT_EQ(grid(3, 2, 90).second, 3);
}

CholeskyShape cholesky_shape(std::int64_t tiles, std::int64_t devices, std::int64_t memory) {
  CholeskyShape shape;
  shape.tiles = tiles;
  shape.devices = devices;
  shape.memory = memory;
  return shape;
}

void expect_valid(const CholeskyShape& shape) {
  using Kind = Step::Kind;
  std::set<std::pair<int, int>> factored;
  std::map<std::pair<int, int>, int> updates;
  std::int64_t steps = 0;
  cholesky_order(shape, [&](const Step& step) {
    ++steps;
    ASSERT_TRUE(step.owner >= 0 && step.owner < shape.devices);
    const std::pair tile{step.i, step.j};
    if (step.kind == Kind::syrk || step.kind == Kind::gemm) {
      ASSERT_EQ(updates[tile]++, step.k);
      ASSERT_TRUE(factored.contains({step.i, step.k}) && factored.contains({step.j, step.k}));
      return;
    }
    ASSERT_EQ(updates[tile], step.j);
    ASSERT_EQ(step.j, step.k);
    if (step.kind == Kind::trsm) {
      ASSERT_TRUE(factored.contains({step.k, step.k}));
    }
    ASSERT_TRUE(factored.insert(tile).second);
  });
  const std::int64_t n = shape.tiles;
  EXPECT_EQ(steps, n * (n + 1) * (n + 2) / 6);
}

TEST(CholeskyOrder, RespectsDependenciesWithUpdatesInLine) {
  for (const std::int64_t tiles : {0, 1, 2, 5, 17})
    for (const std::int64_t devices : {1, 2, 3, 4, 6, 8})
      for (const std::int64_t memory : {0, 3, 10, 40, 1000}) {
        SCOPED_TRACE(tiles * 10000 + devices * 1000 + memory);
        expect_valid(cholesky_shape(tiles, devices, memory));
      }
}

TEST(CholeskyOrder, BlocksAsWideAsMemoryAllows) {
  EXPECT_EQ(cholesky_blocks(cholesky_shape(16, 1, 335)), std::vector<std::int64_t>{16});
  const auto blocks = cholesky_blocks(cholesky_shape(32, 1, 162));
  EXPECT_LE(blocks.size(), 6U);
  std::int64_t sum = 0;
  for (const std::int64_t width : blocks) sum += width;
  EXPECT_EQ(sum, 32);
}

TEST(CholeskyOrder, RowByRowWhereAllFitsOneDevice) {
  // What a device can do with the rows that are there is done before the next row's first tile.
  int row = 0;
  int steps = 0;
  const CholeskyShape shape = cholesky_shape(12, 1, 100);
  cholesky_order(shape, [&](const Step& step) {
    if (step.i != row) {
      EXPECT_EQ(step.i, row + 1);
      EXPECT_EQ(steps,
                (row + 1) * (row + 2) / 2);  // A row's: one of column 0, two of column 1, ...
      row = step.i;
      steps = 0;
    }
    ++steps;
  });
  EXPECT_EQ(row, 11);
}

TEST(CholeskyOrder, PrioritiesFallAlongEveryPath) {
  const CholeskyShape shape = cholesky_shape(9, 4, 100);
  std::map<std::pair<int, int>, int> last;
  cholesky_order(shape, [&](const Step& step) {
    const auto found = last.find({step.i, step.j});
    if (found != last.end()) {
      EXPECT_GT(found->second, step.priority);
    }
    last[{step.i, step.j}] = step.priority;
  });
}

}  // namespace
}  // namespace quadriga::linalg::testing
