// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/similar.cpp: tasks, work and loads of a problem in closed form, and smaller problems
// like it.
#include "linalg/similar.h"

#include "linalg/cholesky.h"
#include "linalg/device_group.h"
#include "linalg/kernels/codelet_parts.h"
#include "linalg/order.h"
#include "linalg/product_plan.h"
#include "linalg/real.h"

#include <algorithm>
#include <cmath>

namespace quadriga::linalg {
namespace {

std::int64_t tiles_of(std::int64_t length, std::int64_t tile) noexcept {
  return (length + tile - 1) / tile;
}

double bytes_of_product(const Problem& problem) noexcept {
  const double m = real(problem.m);
  const double n = real(problem.n);
  const double k = real(problem.k);
  return (m * k + k * n + m * n) * static_cast<double>(size_of(problem.dtype));
}

/// A machine whose devices have another memory, and whose links another rate; what copies wait for
/// changes alike.
Machine scaled(Machine machine, double memory, double rate) {
  for (Device& device : machine.devices)
    device.memory_bytes =
        static_cast<std::size_t>(std::ceil(static_cast<double>(device.memory_bytes) * memory));
  for (Link& link : machine.links) {
    link.bytes_per_second *= rate;
    link.latency_seconds /= rate;
  }
  return machine;
}

/// Tiles that a factorization loads: each of the triangle once, and those left of a block for each
/// block; where not even a column fits, tiles of the block come again for each column.
double factorization_loads(const CholeskyShape& shape) {
  constexpr double staging = 7;  // as cholesky_blocks() keeps free
  const double together = real(shape.memory * shape.devices);
  double loads = real(shape.tiles) * real(shape.tiles + 1) / 2;
  std::int64_t first = 0;
  for (const std::int64_t width : cholesky_blocks(shape)) {
    const double rows = real(shape.tiles - first);
    const double missing = std::max(0.0, 1 - together / (rows + staging * real(shape.devices)));
    loads += real(first) * rows * (1 + missing);
    first += width;
  }
  return loads;
}

}  // namespace

Large::Large(const Engine& model, const Problem& problem, const Options& options)
    : model_(model), problem_(problem), options_(options), is_planned_(options.tile == 0) {
  const DeviceGroup group = group_of(model);
  devices_ = group.size();
  if (!is_planned_ && devices_ > 0)
    memory_ = std::max<std::int64_t>(
        3, group.tiles(static_cast<std::size_t>(options.tile * options.tile) *
                       quadriga::size_of(problem.dtype)));
  size_ = is_planned_ ? planned(model, problem) : size_of(problem, memory_);
}

double Large::seconds(const kernels::Names& kernel) const {
  const Machine& machine = model_.machine();
  const DeviceGroup group = group_of(model_);
  const Device& device = machine.devices[devices_ > 0 ? group.devices.front() : 0];
  const double order = real(options_.tile);
  return machine.kernel_seconds(device, kernel[kernels::type_index(problem_.dtype)], order,
                                order * order * order);
}

Large::Size Large::size_of(const Problem& problem, std::int64_t memory) const {
  return problem.kind == Problem::Kind::matmul ? product(problem, memory)
                                               : factorization(problem, memory);
}

Large::Size Large::factorization(const Problem& problem, std::int64_t memory) const {
  const double potrf = seconds(kernels::potrf_names);
  const double below = seconds(kernels::trsm_names) + seconds(kernels::syrk_names);
  const double gemm = seconds(kernels::gemm_names);
  const double edge = real(problem.m) / real(options_.tile);
  const double pairs = edge * std::max(0.0, edge - 1) / 2;
  CholeskyShape shape;
  shape.tiles = tiles_of(problem.m, options_.tile);
  shape.devices = std::max<std::int64_t>(1, devices_);
  shape.memory = memory;
  const double right = problem.kind == Problem::Kind::cho_solve
                           ? real(problem.n) / real(options_.tile) * edge * edge
                           : 0;
  Size size;
  size.tasks = cholesky_tasks(shape.tiles) + std::ceil(right);
  size.work = edge * potrf + pairs * below + (pairs * std::max(0.0, edge - 2) / 3 + right) * gemm;
  size.chain = edge * potrf + std::max(0.0, edge - 1) * below;
  size.loads = memory > 0 ? factorization_loads(shape) + right : 0;
  return size;
}

Large::Size Large::product(const Problem& problem, std::int64_t memory) const {
  const std::int64_t tile = options_.tile;
  const std::int64_t rows = tiles_of(problem.m, tile);
  const std::int64_t cols = tiles_of(problem.n, tile);
  const std::int64_t inner = tiles_of(problem.k, tile);
  const double gemm = seconds(kernels::gemm_names);
  Size size;
  size.tasks = real(rows) * real(cols) * real(inner);
  size.work = real(problem.m) / real(tile) * (real(problem.n) / real(tile)) *
              (real(problem.k) / real(tile)) * gemm;
  size.chain = real(problem.k) / real(tile) * gemm * std::min(1.0, size.work / gemm);
  if (memory == 0) return size;
  const Grid grid = product_grid(devices_, rows, cols);
  const ProductShape shape{share(rows, grid.rows, grid.rows - 1),
                           share(cols, grid.cols, grid.cols - 1), inner, memory, 0};
  size.loads = real(devices_) * real(product_traffic(shape)) +
               real(rows) * real(cols) * (problem.accumulate ? 2 : 1);
  return size;
}

Large::Size Large::planned(const Engine& engine, const Problem& problem) const {
  const DeviceGroup group = group_of(engine);
  const ProductPlan plan = plan_product(engine, group, problem, options_);
  const Grid grid = product_grid(devices_, plan.rows.count(), plan.cols.count());
  const std::int64_t rows = tiles_of(plan.rows.count(), grid.rows);
  Size size;
  size.tasks = real(plan.rows.count()) * real(plan.cols.count()) * real(plan.sum.count());
  size.work = real(problem.m) * real(problem.n) * real(problem.k);
  size.is_listed = !plan.orders.empty();
  // What doesn't stay of B beside a row of tiles of A passes again for each such row.
  const auto element = static_cast<double>(quadriga::size_of(problem.dtype));
  const double all_of_b = real(problem.k) * real(problem.n) * element;
  const double room = real(devices_) * (static_cast<double>(group.memory_bytes) -
                                        real(plan.rows.tile) * real(problem.k) * element);
  const double missing = size.is_listed ? 0 : std::max(0.0, 1 - std::max(0.0, room) / all_of_b);
  size.loads = bytes_of_product(problem) + real(rows - 1) * missing * all_of_b;
  return size;
}

Problem Large::shrunk(double factor) const {
  constexpr std::int64_t granule = 512;
  const std::int64_t unit = is_planned_ ? granule : options_.tile;
  const auto shorter = [&](std::int64_t length) {
    const std::int64_t tiles = tiles_of(length, unit);
    if (tiles <= 1) return length;
    return unit * std::max<std::int64_t>(1, std::llround(real(tiles) / factor));
  };
  Problem problem = problem_;
  problem.m = shorter(problem.m);
  problem.n = shorter(problem.n);
  problem.k = shorter(problem.k);
  return problem;
}

std::int64_t Large::memory_for(const Problem& problem, double factor) const {
  if (memory_ == 0) return 0;
  constexpr double most_columns = 3;
  constexpr double least_of_product = 24;
  const double alike = real(memory_) / (factor * factor);
  double least = least_of_product;
  if (problem.kind != Problem::Kind::matmul) {
    constexpr double staging = 8;
    const double columns = real(memory_ * devices_) / real(tiles_of(problem_.m, options_.tile));
    least = std::min(columns, most_columns) * real(tiles_of(problem.m, options_.tile)) /
                real(devices_) +
            staging;
  } else {
    const double panel = real(memory_) / real(tiles_of(problem_.k, options_.tile) + 2);
    if (panel >= 1)
      least = std::max(
          least, std::min(panel, most_columns) * real(tiles_of(problem.k, options_.tile) + 2) + 4);
  }
  return std::min(memory_, static_cast<std::int64_t>(std::ceil(std::max(alike, least))));
}

Similar Large::similar_by(double factor) const {
  Similar similar;
  similar.problem = shrunk(factor);
  Size small;
  if (is_planned_) {
    const double all = bytes_of_product(problem_);
    const DeviceGroup group = group_of(model_);
    const double over = all / (static_cast<double>(group.memory_bytes) * real(devices_));
    constexpr double well_over = 3;
    const double memory =
        size_.is_listed ? 1
                        : std::max(1 / (factor * factor),
                                   std::min(1 / factor, over / well_over / (factor * factor)));
    EngineOptions options = model_.options();
    options.machine = scaled(model_.machine(), memory, 1);
    small = planned(Engine(options), similar.problem);
    const double rate = small.loads / small.work * size_.work / size_.loads;
    similar.machine = scaled(model_.machine(), memory, rate);
  } else {
    const std::int64_t memory = memory_for(similar.problem, factor);
    small = size_of(similar.problem, memory);
    const double rate = memory == 0 ? 1 : small.loads / small.tasks * size_.tasks / size_.loads;
    similar.machine =
        scaled(model_.machine(), memory == 0 ? 1 : real(memory) / real(memory_), rate);
  }
  similar.tasks = small.tasks;
  similar.edge =
      is_planned_ ? std::cbrt(small.work / size_.work) : std::cbrt(small.tasks / size_.tasks);
  similar.seconds = size_.work / small.work;
  similar.bytes = small.loads > 0 ? size_.loads / small.loads : 0;
  return similar;
}

double Large::tasks(const Similar& similar, std::uint64_t ended) const noexcept {
  if (problem_.kind == Problem::Kind::matmul) return size_.tasks;
  const double others = static_cast<double>(ended) - similar.tasks;
  return size_.tasks + std::round(std::max(0.0, others) / (similar.edge * similar.edge));
}

Similar Large::similar(double tasks) const {
  constexpr double step = 1.05;
  constexpr double most = 1e9;
  double factor = std::max(1.0, std::cbrt(size_.tasks / tasks));
  Similar found = similar_by(factor);
  while (found.tasks > tasks && factor < most) {
    factor *= step;
    found = similar_by(factor);
  }
  return found;
}

}  // namespace quadriga::linalg
