// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/call_plan.cpp: a call's plan, by one device or by all.
#include "linalg/call_plan.h"

#include "linalg/check.h"
#include "linalg/cholesky.h"

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
  const DeviceGroup alone = group_at(home);
  ProductPlan by_one = plan_product(engine, alone, problem, options);
  const bool is_sure = all.size() < 2 || by_one.orders.empty() || reproducible(engine, options);
  if (is_sure) return with_group(std::move(by_one), alone);
  const DeviceGroup fed = fed_from(engine, all, home);
  ProductPlan shared = plan_product(engine, fed, problem, options);
  if (shared.orders.empty() || shared.seconds >= by_one.seconds)
    return with_group(std::move(by_one), alone);
  return with_group(std::move(shared), fed);
}

}  // namespace

CallPlan plan(const Engine& engine, const Problem& problem, DeviceId home, const Options& options) {
  if (problem.kind == Problem::Kind::matmul) return plan_matmul(engine, problem, home, options);
  auto [group, tile] = plan_cholesky(engine, home, problem.m, problem.dtype, options);
  CallPlan plan;
  plan.rows = {problem.m, tile};
  plan.cols = {problem.n, tile};
  plan.sum = plan.sum_of_b = {problem.k, tile};
  plan.triangle = cholesky_shape(engine, group, problem.m, tile, problem.dtype);
  plan.group = std::move(group);
  return plan;
}

}  // namespace quadriga::linalg
