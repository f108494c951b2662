// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/call_plan.cpp: a call's plan, by one device or by all.
#include "linalg/call_plan.h"

#include "linalg/check.h"
#include "linalg/cholesky.h"
#include "linalg/kernels/codelet_parts.h"

#include <algorithm>
#include <utility>

namespace quadriga::linalg {
namespace {

CallPlan with_group(ProductPlan product, DeviceGroup group) {
  CallPlan plan;
  static_cast<ProductPlan&>(plan) = std::move(product);
  plan.group = std::move(group);
  return plan;
}

CallPlan plan_matmul(const Engine& engine, const Problem& problem, DeviceId home,
                     const Options& options) {
  const DeviceGroup all = group_of(engine);
  if (home == no_device) return with_group(plan_product(engine, all, problem, options), all);
  const DeviceGroup alone = group_at(engine, home);
  ProductPlan by_one = plan_product(engine, alone, problem, options);
  const bool is_sure = all.size() < 2 || by_one.orders.empty() || reproducible(engine, options);
  if (is_sure) return with_group(std::move(by_one), alone);
  const DeviceGroup fed = fed_from(engine, all, home);
  ProductPlan shared = plan_product(engine, fed, problem, options);
  if (shared.orders.empty() || shared.seconds >= by_one.seconds)
    return with_group(std::move(by_one), alone);
  return with_group(std::move(shared), fed);
}

/// Time to bring a square tile over that of a product of such.
double load_ratio(const Engine& engine, const DeviceGroup& group, std::int64_t tile, DType dtype) {
  if (group.size() == 0) return 0;
  const auto order = static_cast<double>(tile);
  const double seconds = kernel_seconds(
      engine, group, kernels::gemm_names[kernels::type_index(dtype)], order, order * order * order);
  return order * order * static_cast<double>(size_of(dtype)) * group.seconds_a_byte / seconds;
}

CallPlan plan_triangle(const Engine& engine, const Problem& problem, DeviceId home,
                       const Options& options, Trials trials) {
  auto [group, tile] = plan_cholesky(engine, home, problem, options, trials);
  CallPlan plan;
  plan.rows = {problem.m, tile};
  plan.cols = {problem.n, tile};
  plan.sum = plan.sum_of_b = {problem.k, tile};
  plan.triangle = cholesky_shape(engine, group, problem.m, tile, problem.dtype);
  plan.group = std::move(group);
  return plan;
}

}  // namespace

CallPlan plan(const Engine& engine, const Problem& problem, DeviceId home, const Options& options) {
  if (problem.kind == Problem::Kind::matmul) return plan_matmul(engine, problem, home, options);
  return plan_triangle(engine, problem, home, options, Trials::allowed);
}

CallPlan plan_like_factorization(const Engine& engine, const Problem& problem,
                                 const Options& options) {
  return plan_triangle(engine, problem, no_device, options, Trials::none);
}

std::vector<ProductOrder> product_orders(const Engine& engine, const CallPlan& plan, DType dtype) {
  std::vector<ProductOrder> orders;
  for (const std::vector<Product>& listed : plan.orders) orders.emplace_back(listed);
  if (!orders.empty()) return orders;
  const DeviceGroup& group = plan.group;
  const std::int64_t tile = plan.rows.tile;
  const std::int64_t inner = plan.sum.count();
  const std::int64_t count = std::max<std::int64_t>(1, group.size());
  const Grid grid = product_grid(count, plan.rows.count(), plan.cols.count());
  const double ratio = load_ratio(engine, group, tile, dtype);
  std::int64_t memory = 0;
  if (group.size() > 0)
    memory = std::max<std::int64_t>(
        1, group.tiles(static_cast<std::size_t>(tile * tile) * size_of(dtype)));
  for (std::int64_t p = 0; p < count; ++p) {
    const Range rows = share(plan.rows.count(), grid.rows, p / grid.cols);
    const Range cols = share(plan.cols.count(), grid.cols, p % grid.cols);
    if (plan.height > 0)
      orders.emplace_back(PanelShape{rows, cols, inner, plan.at_start, plan.height});
    else
      orders.emplace_back(ProductShape{rows, cols, inner, memory, ratio});
  }
  return orders;
}

}  // namespace quadriga::linalg
