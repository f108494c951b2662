// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/linalg/product_plan_test.cpp: tiles of products of matrices that lie on one device.
#include "linalg/product_plan.h"

#include <climits>

#include "unit/linalg/matrices.h"

namespace quadriga::linalg {
namespace {

ProductPlan plan_there(std::int64_t m, std::int64_t n, std::int64_t k) {
  EngineOptions options;
  options.machine = Machine::parse("machine=" QUADRIGA_SOURCE_DIR "/machines/h200x1.json");
  options.virtual_clock = true;
  options.compute = false;
  const Engine engine(options);
  return plan_product(engine, team_at(0), {Problem::Kind::matmul, m, n, k, DType::float64}, {});
}

TEST(ProductPlans, WhatLiesOnOneDeviceIsOneProduct) {
  const ProductPlan plan = plan_there(8192, 8192, 8192);
  EXPECT_EQ(plan.rows, 8192);
  EXPECT_EQ(plan.cols, 8192);
  EXPECT_EQ(plan.inner, 8192);
}

TEST(ProductPlans, OfMoreThanKernelsCountItIsSeveral) {
  constexpr std::int64_t tall = 3'000'000'000;
  const ProductPlan down = plan_there(tall, 4, 4);
  EXPECT_GT(down.rows, 1 << 20);
  EXPECT_LE(down.rows, INT_MAX);
  const ProductPlan along = plan_there(4, 4, tall);
  EXPECT_GT(along.inner, 1 << 20);
  EXPECT_LE(along.inner, INT_MAX);
}

}  // namespace
}  // namespace quadriga::linalg
