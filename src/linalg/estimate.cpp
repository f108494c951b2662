// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/estimate.cpp: what a call would cost, by running its program without data, or programs
// like it that are small.
#include "linalg/estimate.h"

#include <quadriga/simulate.h>

#include "base/units.h"
#include "device/kinds.h"
#include "engine/engine_access.h"
#include "linalg/call_plan.h"
#include "linalg/check.h"
#include "linalg/cholesky_choice.h"
#include "linalg/kernels/codelet_parts.h"
#include "linalg/product_plan.h"
#include "linalg/product_times.h"
#include "linalg/rates.h"
#include "linalg/similar.h"
#include "linalg/tile_size.h"
#include "linalg/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>
#include <utility>

namespace quadriga::linalg {
namespace {

std::atomic<std::uint64_t> tried{0};  ///< Tasks of trials.

/// Of a matrix that an address can be pretended for.
constexpr std::uintptr_t most_bytes = std::uintptr_t{1} << 60;

/// Memory that nothing touches: an address is all that a program without data needs.
MatrixView pretended(std::int64_t rows, std::int64_t cols, DType dtype, int which) {
  constexpr std::uintptr_t apart = most_bytes;
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
  options.length_scale = {1.0};
  return covariance(options, std::vector<double>(static_cast<std::size_t>(order)), 1);
}

/// Of the caller's memory that the program needs. In floating point: what is larger than any memory
/// is refused by it.
double matrix_bytes(const Problem& problem) {
  const auto bytes = [&](std::int64_t rows, std::int64_t cols) {
    return static_cast<double>(rows) * static_cast<double>(cols) *
           static_cast<double>(size_of(problem.dtype));
  };
  const auto [kind, m, n, k, dtype, from_source, accumulate, in_place] = problem;
  if (kind == Problem::Kind::matmul) return bytes(m, k) + bytes(k, n) + bytes(m, n);
  return (from_source ? 0 : (in_place ? 1 : 2) * bytes(m, m)) +
         (kind == Problem::Kind::cho_solve ? bytes(m, n) : 0);
}

void run_program(Engine& engine, const Problem& problem, const Options& options) {
  const auto [kind, m, n, k, dtype, from_source, accumulate, in_place] = problem;
  if (kind == Problem::Kind::matmul)
    return matmul(engine, 1, pretended(m, k, dtype, 1), Op::none, pretended(k, n, dtype, 2),
                  Op::none, accumulate ? 1 : 0, pretended(m, n, dtype, 3), options);
  const MatrixView view = pretended(m, m, dtype, 1);
  if (kind == Problem::Kind::cholesky && !from_source)
    return cholesky(engine, view, in_place ? view : pretended(m, m, dtype, 2), Uplo::lower,
                    Other::leave, options);
  Matrix a(view);
  if (from_source) a = pretended_source(m, dtype);
  const Factor factor = cho_factor(engine, a, {Uplo::lower}, options);
  if (kind == Problem::Kind::cho_solve) factor.solve(pretended(m, n, dtype, 2), options);
}

bool has_file(const Machine& machine) {
  return std::ranges::any_of(
      machine.devices, [](const Device& device) { return properties_of(device.kind).only_stores; });
}

/// Of the host's buffers beside a smaller problem, where what they don't hold goes to a file: the
/// same share of the matrix, but some tiles for each device.
std::size_t smaller_host_memory(const EngineOptions& where, const Problem& large,
                                const Problem& small, std::int64_t tile) {
  const bool has_homeless = large.kind != Problem::Kind::matmul;
  if (!has_homeless || !where.machine || !has_file(*where.machine)) return where.host_memory;
  constexpr std::size_t tiles_of_device = 8;
  const auto edge = static_cast<std::size_t>(std::min<std::int64_t>(tile, small.m));
  const std::size_t least =
      tiles_of_device * where.machine->devices.size() * edge * edge * size_of(small.dtype);
  const double share = static_cast<double>(small.m) / static_cast<double>(large.m);
  const double alike = static_cast<double>(where.host_memory) * share * share;
  return std::min(where.host_memory, std::max(least, static_cast<std::size_t>(alike)));
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
double shared_work(const Machine& machine, const Counters& counters, const DeviceGroup& group) {
  if (group.size() == 0) return counters.work_seconds / std::max(1, machine.devices.front().cores);
  Nanoseconds work = 0;
  for (const DeviceId device : group.devices) work += counters.devices[device].computing;
  return static_cast<double>(work) / 1e9 / static_cast<double>(group.size());
}

/// Of bytes that must go to devices.
double least_copy_seconds(const Problem& problem, const DeviceGroup& group) {
  if (group.size() == 0) return 0;
  return least_bytes(problem) * group.seconds_a_byte / static_cast<double>(group.size());
}

std::string link_name(const Machine& machine, const LinkCounters& link) {
  const auto name = [&](SpaceId space) -> std::string {
    for (const Device& device : machine.devices)
      if (device.space == space && space != host_space) return device.name;
    return "host";
  };
  return name(link.source) + "-" + name(link.target);
}

/// The problem's program on a machine, by the virtual clock.
struct Simulation {
  Estimate estimate;
  double work_seconds = 0;  ///< Of all kernels, shared by all devices.
};

/// On an engine that did nothing else.
Simulation simulate_on(Engine& model, const Problem& problem, const Options& options) {
  run_program(model, problem, options);
  const Counters counters = model.counters();
  const Machine& machine = EngineAccess::truth(model);
  const DeviceGroup group = group_of(machine);
  Simulation found{{}, shared_work(machine, counters, group)};
  Estimate& estimate = found.estimate;
  estimate.seconds = static_cast<double>(counters.elapsed) / 1e9;
  estimate.bound_seconds = std::max(
      {found.work_seconds, counters.critical_path_seconds, least_copy_seconds(problem, group)});
  estimate.host_bytes = static_cast<double>(counters.host_bytes());
  for (const LinkCounters& link : counters.links)
    estimate.links.push_back({link_name(machine, link), static_cast<double>(link.bytes)});
  for (const DeviceCounters& device : counters.devices)
    estimate.device_bytes.push_back(device.most_bytes);
  estimate.buffer_bytes = counters.spill_bytes;
  estimate.matrix_bytes = static_cast<std::size_t>(matrix_bytes(problem));
  estimate.tasks = counters.ended;
  return found;
}

Simulation simulate(const EngineOptions& where, const Problem& problem, const Options& options) {
  Engine model(where);
  return simulate_on(model, problem, options);
}

/// What one small program says of the large problem.
struct Sample {
  Similar similar;
  Simulation small;

  double seconds() const { return small.estimate.seconds * similar.seconds; }
  double bytes() const { return small.estimate.host_bytes * similar.bytes; }
  /// What falls as the share of begin and end does: with the square of the tiles along an edge.
  double roughness() const { return 1 / (similar.edge * similar.edge); }
};

struct Figure {
  double value = 0;
  double uncertainty = 0;  ///< Relative.
};

/// Of the large problem, on the line through the finest and the coarsest sample; at least `least`.
/// The uncertainty is the largest deviation of a sample, and what was seen beyond it where the
/// large program was simulated, too (tests/unit/linalg/estimate_test.cpp).
Figure extended(const std::vector<Sample>& samples, double (Sample::*of)() const, double least,
                double seen) {
  const Sample& fine = samples.front();
  const Sample& coarse = samples.back();
  const double run = coarse.roughness() - fine.roughness();
  const double slope = run > 0 ? ((coarse.*of)() - (fine.*of)()) / run : 0;
  Figure figure{std::max(least, (fine.*of)() - slope * (fine.roughness() - 1)), 0};
  if (figure.value <= 0) return figure;
  for (const Sample& sample : samples)
    figure.uncertainty = std::max(figure.uncertainty, std::abs((sample.*of)() / figure.value - 1));
  figure.uncertainty += seen;
  return figure;
}

/// What devices that only store have held at most.
std::size_t bytes_in_files(const Machine& machine, const Estimate& estimate) {
  std::size_t bytes = 0;
  for (std::size_t d = 0; d < estimate.device_bytes.size(); ++d)
    if (properties_of(machine.devices[d].kind).only_stores) bytes += estimate.device_bytes[d];
  return bytes;
}

/// Bytes of a factor that fit no device, by what the small devices kept of the small one.
std::size_t large_buffers(const Sample& sample, const Machine& machine, const Problem& problem) {
  const Estimate& small_estimate = sample.small.estimate;
  const auto spilled =
      static_cast<double>(small_estimate.buffer_bytes + bytes_in_files(machine, small_estimate));
  if (spilled == 0) return 0;
  const auto triangle = [&](std::int64_t order) {
    return static_cast<double>(order) * static_cast<double>(order + 1) / 2 *
           static_cast<double>(size_of(problem.dtype));
  };
  const auto memory = [](const Machine& of) {
    double sum = 0;
    for (const Device& device : of.devices)
      if (is_accelerator(device.kind)) sum += static_cast<double>(device.memory_bytes);
    return sum;
  };
  const double all = triangle(problem.m);
  const double small = triangle(sample.similar.problem.m);
  if (memory(machine) == 0) return static_cast<std::size_t>(spilled / small * all);
  const double kept = std::max(0.0, small - spilled) / memory(sample.similar.machine);
  return static_cast<std::size_t>(std::max(0.0, all - kept * memory(machine)));
}

/// What follows from the finest sample alone. Files hold what the host's buffers don't.
void set_memory(Estimate& estimate, const Sample& sample, const Machine& machine,
                const Problem& problem, std::size_t host_memory) {
  std::size_t left = large_buffers(sample, machine, problem);
  estimate.buffer_bytes = has_file(machine) ? std::min(left, host_memory) : left;
  left -= estimate.buffer_bytes;
  for (std::size_t d = 0; d < estimate.device_bytes.size(); ++d) {
    const Device& device = machine.devices[d];
    const bool is_file = properties_of(device.kind).only_stores;
    const double bytes = is_file
                             ? static_cast<double>(left)
                             : static_cast<double>(estimate.device_bytes[d]) * sample.roughness();
    estimate.device_bytes[d] =
        static_cast<std::size_t>(std::min(static_cast<double>(device.memory_bytes), bytes));
    if (is_file) left -= estimate.device_bytes[d];
  }
  estimate.matrix_bytes = static_cast<std::size_t>(matrix_bytes(problem));
}

Estimate extrapolate(const Large& large, const EngineOptions& where, const Problem& problem,
                     const Options& options, double most_tasks) {
  const WithoutTrials as_large;
  std::vector<Sample> samples;
  std::vector<std::uint64_t> tasks;
  for (const double part : {0.6, 0.25, 0.1}) {
    Sample sample{large.similar(part * most_tasks), {}};
    EngineOptions small = where;
    small.machine = sample.similar.machine;
    small.host_memory = smaller_host_memory(where, problem, sample.similar.problem, options.tile);
    sample.small = simulate(small, sample.similar.problem, options);
    tasks.push_back(sample.small.estimate.tasks);
    samples.push_back(std::move(sample));
  }
  const Sample& finest = samples.front();
  Estimate estimate = finest.small.estimate;
  estimate.extrapolated_from = std::move(tasks);
  const Engine model(where);
  const DeviceGroup group = group_of(model);
  estimate.bound_seconds = std::max({finest.small.work_seconds * finest.similar.seconds,
                                     large.chain_seconds(), least_copy_seconds(problem, group)});
  const Figure seconds = extended(samples, &Sample::seconds, estimate.bound_seconds, 0.03);
  estimate.seconds = seconds.value;
  estimate.seconds_uncertainty = seconds.uncertainty;
  const double least = finest.bytes() > 0 ? least_bytes(problem) : 0;
  const Figure bytes = extended(samples, &Sample::bytes, least, 0.3);
  for (LinkBytes& link : estimate.links)
    link.bytes *= bytes.value / std::max(1.0, estimate.host_bytes);
  estimate.host_bytes = bytes.value;
  estimate.bytes_uncertainty = bytes.uncertainty;
  set_memory(estimate, finest, model.machine(), problem, where.host_memory);
  constexpr double most_counted = 1e19;
  estimate.tasks = static_cast<std::uint64_t>(
      std::min(most_counted, large.tasks(finest.similar, estimate.tasks)));
  return estimate;
}

/// By the virtual clock, without data; as the engine decides otherwise.
EngineOptions model_options(const Engine& engine, DType dtype) {
  EngineOptions where;
  where.machine = with_rates(engine.machine(), dtype);
  where.virtual_clock = true;
  where.compute = false;
  where.policy = engine.options().policy;
  where.window = engine.options().window;
  where.host_memory = engine.options().host_memory;
  return where;
}

void check(const Engine& engine, const Problem& problem) {
  require(problem.m >= 0 && problem.n >= 0 && problem.k >= 0, "sizes must not be negative");
  if (matrix_bytes(problem) >= static_cast<double>(most_bytes))
    fail(Errc::too_large, fmt::format("the matrices take {}; estimates are made of up to 1 EiB",
                                      format_bytes(matrix_bytes(problem))));
  if (problem.kind == Problem::Kind::cho_solve || problem.from_source)
    check_room(engine, "the factor", problem.m, problem.dtype);
}

struct TileSizes {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  bool planned =
      false;  ///< The program chooses them again: lists, or rows of tall tiles that stay.
};

TileSizes tile_sizes(const Engine& engine, const Problem& problem, const Options& options) {
  if (problem.kind != Problem::Kind::matmul) {
    const std::int64_t tile = tile_for(engine, problem, options);
    return {tile, tile};
  }
  const ProductPlan plan = plan_product(engine, group_of(engine), problem, options);
  return {plan.rows.tile, plan.cols.tile, !plan.orders.empty() || plan.height > 0};
}

/// Of a factorization by default tiles: its program is given the tile, and takes these.
std::optional<PlaceOwners> planned_places(const Engine& engine, const Problem& problem,
                                          const Options& options) {
  const bool are_chosen =
      problem.kind != Problem::Kind::matmul && options.tile == 0 && !reproducible(engine, options);
  if (!are_chosen) return std::nullopt;
  return choose_cholesky(engine, group_of(engine), problem, 0, Trials::allowed, Asked::by_query)
      .places;
}

double seconds_of_trial(const Engine& model) {
  const Counters counters = model.counters();
  tried += counters.ended;
  return static_cast<double>(counters.elapsed) / 1e9;
}

/// What is missing is measured for an estimate; a simulation of another machine is refused.
void check_table(const Engine& engine, const Problem& problem) {
  const Machine& machine = engine.machine();
  const DeviceGroup group = group_of(engine);
  const auto check_device = [&](const Device& device) {
    for (const kernels::Names& names :
         {kernels::gemm_names, kernels::syrk_names, kernels::trsm_names, kernels::potrf_names}) {
      const std::string_view kernel = names[kernels::type_index(problem.dtype)];
      if (!machine.has_kernel(device, kernel))
        fail(Errc::invalid_argument,
             fmt::format("machine '{}' has no time of kernel '{}' for device '{}'", machine.name,
                         kernel, device.name));
      if (problem.kind == Problem::Kind::matmul) return;
    }
  };
  for (const DeviceId device : group.devices) check_device(machine.devices[device]);
  if (group.size() == 0) check_device(machine.devices.front());
}

}  // namespace

Estimate estimate(const Engine& engine, const Problem& problem, const Options& options) {
  return estimate(engine, problem, options, most_simulated_tasks);
}

Estimate estimate(const Engine& engine, const Problem& problem, const Options& options,
                  double most_tasks) {
  check(engine, problem);
  const EngineOptions where = model_options(engine, problem.dtype);
  Options same = options;
  same.check_finite = false;
  same.progress = nullptr;
  const TileSizes tiles = tile_sizes(engine, problem, options);
  if (!tiles.planned) same.tile = tiles.rows;
  const std::optional<PlaceOwners> places = planned_places(engine, problem, options);
  std::optional<ImposedPlaces> for_now;
  if (places) for_now.emplace(*places);
  const Engine model(where);
  const Large large(model, problem, same);
  Estimate estimate = large.tasks() <= most_tasks
                          ? simulate(where, problem, same).estimate
                          : extrapolate(large, where, problem, same, most_tasks);
  estimate.tile = tiles.rows;
  estimate.tile_cols = tiles.cols;
  return estimate;
}

std::uint64_t tasks_tried() noexcept { return tried; }

double seconds_by_plan(const Engine& engine, const Problem& problem, const ProductPlan& plan) {
  Engine model(model_options(engine, problem.dtype));
  CallPlan call;
  static_cast<ProductPlan&>(call) = plan;
  call.group = group_of(model);
  const auto [kind, m, n, k, dtype, from_source, accumulate, in_place] = problem;
  Options options;
  options.check_finite = false;
  matmul_by(model, pretended(m, k, dtype, 1), pretended(k, n, dtype, 2), accumulate ? 1 : 0,
            pretended(m, n, dtype, 3), options, std::move(call));
  return seconds_of_trial(model);
}

double seconds_by_tile(const Engine& engine, const Problem& problem, std::int64_t tile,
                       const PlaceOwners& places) {
  const ImposedPlaces for_now(places);
  Engine model(model_options(engine, problem.dtype));
  Options options;
  options.tile = tile;
  options.check_finite = false;
  run_program(model, problem, options);
  return seconds_of_trial(model);
}

Estimate simulate(Engine& engine, const Problem& problem, const Options& options) {
  const EngineOptions& given = engine.options();
  require(given.virtual_clock && !given.compute,
          "a simulation needs an engine under the virtual clock that doesn't compute");
  require(engine.counters().ended == 0, "a simulation needs an engine that ran nothing else");
  check(engine, problem);
  check_table(engine, problem);
  Options same = options;
  same.check_finite = false;
  const TileSizes tiles = tile_sizes(engine, problem, options);
  Estimate estimate = simulate_on(engine, problem, same).estimate;
  estimate.tile = tiles.rows;
  estimate.tile_cols = tiles.cols;
  return estimate;
}

}  // namespace quadriga::linalg
