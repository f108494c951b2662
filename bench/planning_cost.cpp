// SPDX-License-Identifier: BSD-3-Clause
// bench/planning_cost.cpp: trials of factorizations of few and of many tiles tell what an engine
// and what a task costs; a list schedule and a rehearsal are divided by what they order.
#include "planning_cost.h"

#include <quadriga/engine.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "linalg/cholesky.h"
#include "linalg/cholesky_schedule.h"
#include "linalg/estimate.h"
#include "linalg/product_rehearsal.h"
#include "line.h"

namespace quadriga::bench {
namespace {

using namespace linalg;

constexpr std::int64_t few_tiles = 4;
constexpr std::int64_t many_tiles = 32;
constexpr double share_of_memory = 0.25;  // So that nothing is evicted, which takes longer.
constexpr double least_seconds = 1e-12;   // As descriptions have it.

template <class Work>
double median_seconds(int repeat, Work&& work) {
  std::vector<double> found;
  work();  // Makes what is made once.
  for (int i = 0; i < repeat; ++i) {
    const double begin = now();
    work();
    found.push_back(now() - begin);
  }
  return median(std::move(found));
}

class Planning {
 public:
  Planning(const Engine& engine, const DeviceGroup& group, DType dtype, int repeat)
      : engine_(engine), group_(group), dtype_(dtype), repeat_(repeat) {
    const double elements = share_of_memory * static_cast<double>(group.memory_bytes) /
                            static_cast<double>(size_of(dtype));
    const double fits = std::sqrt(elements) / static_cast<double>(many_tiles);
    tile_ = std::clamp<std::int64_t>(static_cast<std::int64_t>(fits), 1, 1024);
  }

  PlanningCost cost() const {
    const double few = trial(few_tiles), many = trial(many_tiles);
    const double tasks = cholesky_tasks(many_tiles), least = cholesky_tasks(few_tiles);
    const double a_task = std::max((many - few) / (tasks - least), least_seconds);
    return {std::max(few - least * a_task, least_seconds), a_task,
            std::max(listed() / tasks, least_seconds), std::max(rehearsed(), least_seconds)};
  }

 private:
  double trial(std::int64_t tiles) const {
    Problem problem{Problem::Kind::cholesky, tiles * tile_, tiles * tile_, 0, dtype_};
    return median_seconds(repeat_,
                          [&] { seconds_by_tile(engine_, problem, tile_, group_.places); });
  }
  double listed() const {
    const CholeskyTimes times = cholesky_times(engine_, group_, many_tiles * tile_, tile_, dtype_);
    return median_seconds(repeat_, [&] { cholesky_seconds(times); });
  }
  /// Each product of tiles.
  double rehearsed() const {
    const std::int64_t order = many_tiles * tile_;
    const Problem problem{Problem::Kind::matmul, order, order, order, dtype_};
    const ProductTimes times(engine_, group_, problem);
    HomeLinks home_links(engine_.machine(), group_);
    const ProductPlan plan = plan_product(engine_, group_, problem, {});
    const auto products =
        static_cast<double>(plan.rows.count() * plan.cols.count() * plan.sum.count());
    return median_seconds(repeat_, [&] { rehearse(times, home_links, problem, plan); }) / products;
  }

  const Engine& engine_;
  const DeviceGroup& group_;
  const DType dtype_;
  const int repeat_;
  std::int64_t tile_ = 1;
};

}  // namespace

PlanningCost planning_cost(const Machine& machine, int repeat) {
  EngineOptions options;
  options.machine = machine;
  options.virtual_clock = true;
  options.compute = false;
  const Engine engine(options);
  const DeviceGroup group = group_of(engine);
  if (group.size() == 0) return {};
  for (const DType dtype : {DType::float64, DType::float32})
    if (knows_rates(engine, group.devices.front(), dtype))
      return Planning(engine, group, dtype, repeat).cost();
  return {};
}

}  // namespace quadriga::bench
