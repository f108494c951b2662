// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/estimate.cpp: what a call would cost, by running its program without data.
#include "linalg/check.h"
#include "linalg/cholesky.h"
#include "linalg/product_plan.h"
#include "linalg/product_times.h"
#include "linalg/rates.h"
#include "linalg/tile_size.h"
#include "linalg/view.h"

#include <quadriga/linalg.h>

namespace quadriga::linalg {
namespace {

/// Memory that nothing touches: an address is all that a program without data needs.
MatrixView pretended(std::int64_t rows, std::int64_t cols, DType dtype, int which) {
  constexpr std::uintptr_t apart = std::uintptr_t{1} << 44;
  void* const nowhere = reinterpret_cast<void*>(apart * static_cast<std::uintptr_t>(which));
  return MatrixView::columns(nowhere, rows, cols, dtype);
}

/// A matrix that devices compute where they need it; nothing asks for its elements.
Matrix pretended_source(std::int64_t order, DType dtype) {
  if (is_complex(dtype))
    return from_function(
        order, order, dtype, [](std::int64_t, std::int64_t, const View&) {}, true);
  CovarianceOptions options;
  options.dtype = dtype;
  options.length_scales = {1.0};
  return covariance(options, std::vector<double>(static_cast<std::size_t>(order)), 1);
}

std::size_t bytes_of(std::int64_t rows, std::int64_t cols, DType dtype) {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols) * size_of(dtype);
}

/// The program; returns the bytes of the caller's memory that it needs.
std::size_t run_program(Engine& engine, const Problem& problem, const Options& options) {
  const auto [kind, m, n, k, dtype, from_source, accumulate] = problem;
  if (kind == Problem::Kind::matmul) {
    matmul(engine, 1, pretended(m, k, dtype, 1), Op::none, pretended(k, n, dtype, 2), Op::none,
           accumulate ? 1 : 0, pretended(m, n, dtype, 3), options);
    return bytes_of(m, k, dtype) + bytes_of(k, n, dtype) + bytes_of(m, n, dtype);
  }
  const MatrixView view = pretended(m, m, dtype, 1);
  if (kind == Problem::Kind::cholesky && !from_source) {
    cholesky(engine, view, view, Uplo::lower, Other::leave, options);
    return bytes_of(m, m, dtype);
  }
  Matrix a(view);
  if (from_source) a = pretended_source(m, dtype);
  const Factor factor = cho_factor(engine, a, {}, options);
  if (kind == Problem::Kind::cho_solve) factor.solve(pretended(m, n, dtype, 2), options);
  return (from_source ? 0 : bytes_of(m, m, dtype)) +
         (kind == Problem::Kind::cho_solve ? bytes_of(m, n, dtype) : 0);
}

/// Bytes that must go to and from devices, whatever the order.
double least_bytes(const Problem& problem) {
  const auto element = static_cast<double>(size_of(problem.dtype));
  const auto m = static_cast<double>(problem.m);
  const auto n = static_cast<double>(problem.n);
  const auto k = static_cast<double>(problem.k);
  if (problem.kind == Problem::Kind::matmul)
    return element * (m * k + k * n + m * n * (problem.accumulate ? 1 : 0));
  if (problem.from_source) return 0;
  return element * m * (m + 1) / 2;
}

/// Seconds of all kernels over what computes; those that run at once on an accelerator share it.
double shared_work(const Machine& machine, const Counters& counters, const Team& team) {
  if (team.size() == 0) return counters.work_seconds / std::max(1, machine.devices.front().cores);
  Nanoseconds work = 0;
  for (const DeviceId device : team.devices) work += counters.devices[device].computing;
  return static_cast<double>(work) / 1e9 / static_cast<double>(team.size());
}

std::string link_name(const Machine& machine, const LinkCounters& link) {
  const auto name = [&](SpaceId space) -> std::string {
    for (const Device& device : machine.devices)
      if (device.space == space && space != host_space) return device.name;
    return "host";
  };
  return name(link.from) + "-" + name(link.to);
}

}  // namespace

Estimate estimate(const Engine& engine, const Problem& problem, const Options& options) {
  require(problem.m >= 0 && problem.n >= 0 && problem.k >= 0, "sizes must not be negative");
  EngineOptions virtual_options;
  virtual_options.machine = with_rates(engine.machine(), problem.dtype);
  virtual_options.virtual_clock = true;
  virtual_options.compute = false;
  virtual_options.policy = engine.options().policy;
  virtual_options.window = engine.options().window;
  virtual_options.host_memory = engine.options().host_memory;
  if (problem.kind == Problem::Kind::cho_solve || problem.from_source)
    check_room(engine, "the factor", problem.m, problem.dtype);
  Engine model(virtual_options);
  Estimate estimate;
  Options same = options;
  if (problem.kind == Problem::Kind::matmul) {
    const Team team = team_of(engine);
    const ProductPlan plan = plan_product(engine, team, problem, options);
    estimate.tile = plan.rows.tile;
    estimate.tile_cols = plan.cols.tile;
    // Else the model plans as well.
    if (!has_fast_products(engine, team, problem.dtype)) same.tile = estimate.tile;
  } else {
    estimate.tile = estimate.tile_cols = same.tile = tile_for(engine, problem, options);
  }
  same.check_finite = false;
  same.progress = nullptr;
  estimate.matrix_bytes = run_program(model, problem, same);
  const Counters counters = model.counters();
  const Machine& machine = model.machine();
  const Team team = team_of(model);
  const auto devices = static_cast<double>(std::max<std::int64_t>(1, team.size()));
  estimate.seconds = static_cast<double>(counters.elapsed) / 1e9;
  estimate.bound_seconds =
      std::max({shared_work(machine, counters, team), counters.critical_path_seconds,
                team.size() > 0 ? least_bytes(problem) * team.seconds_a_byte / devices : 0});
  estimate.host_bytes = static_cast<double>(counters.host_bytes());
  for (const LinkCounters& link : counters.links)
    estimate.links.push_back({link_name(machine, link), static_cast<double>(link.bytes)});
  for (const DeviceCounters& device : counters.devices)
    estimate.device_bytes.push_back(device.most_bytes);
  estimate.buffer_bytes = counters.spill_bytes;
  estimate.tasks = counters.ended;
  return estimate;
}

}  // namespace quadriga::linalg
