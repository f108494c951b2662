// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/product_plan.cpp: which of the searches cuts a product.
#include "linalg/product_plan.h"

#include "base/config.h"
#include "linalg/check.h"
#include "linalg/estimate.h"
#include "linalg/product_search.h"
#include "linalg/special_cases.h"
#include "linalg/tile_size.h"
#include "linalg/tile_trials.h"

#include <algorithm>
#include <list>
#include <mutex>
#include <optional>
#include <utility>

namespace quadriga::linalg {
namespace {

double tasks_of(const ProductPlan& plan) noexcept {
  return static_cast<double>(plan.rows.count()) * static_cast<double>(plan.cols.count()) *
         static_cast<double>(plan.sum.count());
}

/// Trials are of programs from host memory on all devices. A list schedule of one is exact.
bool tries_plans(const Engine& engine, const DeviceGroup& group) {
  return uses(SpecialCase::product_trials) && group.size() >= 2 && group.home == host_space &&
         can_try(engine) && Config::global().integer("planning_percent") > 0;
}

/// All that the searches know of a problem: equal ones have equal plans.
std::vector<double> key_of(const Engine& engine, const ProductTimes& times,
                           const DeviceGroup& group, const Problem& problem) {
  std::vector<double> key;
  for (const std::int64_t length : {problem.m, problem.n, problem.k, group.size(), group.granule})
    key.push_back(static_cast<double>(length));
  for (const bool is : {problem.accumulate, group.resident}) key.push_back(is ? 1 : 0);
  key.push_back(static_cast<double>(group.memory_bytes));
  key.push_back(tries_plans(engine, group) ? 1 : 0);
  key.push_back(special_cases_left_out());
  key.push_back(static_cast<double>(engine.options().window));
  key.push_back(static_cast<double>(engine.options().host_memory));
  for (const char* const setting : {"window", "planning_percent"})
    key.push_back(static_cast<double>(Config::global().integer(setting)));
  times.append_to(key);
  return key;
}

/// The plans of the last calls: programs repeat products, and a search takes up to a millisecond.
class Memo {
 public:
  std::optional<ProductPlan> find(const std::vector<double>& key) {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(plans_, key, &Entry::first);
    if (found == plans_.end()) return std::nullopt;
    plans_.splice(plans_.begin(), plans_, found);
    return plans_.front().second;
  }
  void keep(std::vector<double> key, const ProductPlan& plan) {
    constexpr std::size_t most = 16;
    const std::lock_guard lock(mutex_);
    plans_.emplace_front(std::move(key), plan);
    if (plans_.size() > most) plans_.pop_back();
  }

 private:
  using Entry = std::pair<std::vector<double>, ProductPlan>;
  std::mutex mutex_;
  std::list<Entry> plans_;  ///< Last used first; guarded by mutex_.
};

Memo& memo() {
  static Memo memo;
  return memo;
}

/// The quickest by the virtual clock of plans that seem alike, the best first, and whose trials
/// don't take too long; the first if those are fewer than two. What begins and ends of a program of
/// so many tasks that estimates don't simulate it whole is a small part of it.
ProductPlan best_by_trial(const Engine& engine, double devices, const Problem& problem,
                          std::vector<ProductPlan> plans) {
  const double most_seconds = planning_seconds(plans.front().seconds);
  TrialBudget budget;
  std::vector<std::size_t> tried;
  for (std::size_t i = 0; i < plans.size() && tried.size() < most_trials; ++i)
    if (tasks_of(plans[i]) <= most_simulated_tasks &&
        trial_seconds(engine.machine(), tasks_of(plans[i])) <= most_seconds &&
        budget.take(devices * tasks_of(plans[i])))
      tried.push_back(i);
  if (tried.size() < 2) return std::move(plans.front());
  const std::vector<double> seconds = seconds_by_trial(tried.size(), [&](std::size_t index) {
    return seconds_by_plan(engine, problem, plans[tried[index]]);
  });
  const auto least = std::ranges::min_element(seconds) - seconds.begin();
  return std::move(plans[tried[static_cast<std::size_t>(least)]]);
}

std::optional<ProductPlan> search(const Engine& engine, const DeviceGroup& group,
                                  const Problem& problem) {
  const ProductTimes times(engine, group, problem);
  std::vector<double> key = key_of(engine, times, group, problem);
  std::optional<ProductPlan> plan = memo().find(key);
  if (plan) return plan;
  const bool tries = tries_plans(engine, group);
  const double near = tries ? trial_tolerance : 1;
  std::vector<ProductPlan> plans;
  if (uses(SpecialCase::lists)) plans = list_plans(times, group, problem, near);
  if (plans.empty() && uses(SpecialCase::panels)) plans = stream_plans(times, group, problem, near);
  if (plans.empty()) return std::nullopt;
  const auto devices = static_cast<double>(group.size());
  plan =
      tries ? best_by_trial(engine, devices, problem, std::move(plans)) : std::move(plans.front());
  memo().keep(std::move(key), *plan);
  return plan;
}

}  // namespace

std::int64_t even_tile(const DeviceGroup& group, std::int64_t size, std::int64_t tile) noexcept {
  const auto parts = [](std::int64_t whole, std::int64_t part) {
    return (whole + part - 1) / part;
  };
  return std::min(size, group.whole(parts(size, parts(size, tile))));
}

ProductPlan plan_product(const Engine& engine, const DeviceGroup& group, const Problem& problem,
                         const Options& options) {
  if (options.tile == 0 && knows_products(engine, group, problem.dtype)) {
    const DeviceGroup planned = reproducible(engine, options) ? first_of(engine, group) : group;
    std::optional<ProductPlan> plan = search(engine, planned, problem);
    if (plan && planned.size() < group.size() && !plan->orders.empty())
      share_plan(ProductTimes(engine, group, problem), group, problem, *plan);
    if (plan) return *std::move(plan);
  }
  const std::int64_t tile = tile_for(engine, problem, options);
  ProductPlan plan;
  plan.rows = {problem.m, tile};
  plan.cols = {problem.n, tile};
  plan.sum = plan.sum_of_b = {problem.k, tile};
  return plan;
}

}  // namespace quadriga::linalg
