// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/device_choice.cpp: by figures, and by a small system.
#include "sparse/device_choice.h"

#include <fmt/format.h>
#include <quadriga/error.h>
#include <quadriga/sparse.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "sparse/kernels/part_codelets.h"

namespace quadriga::sparse {
namespace {

/// To another device's memory and back, a few bytes.
double round_trip(const Machine& machine, SpaceId there, SpaceId back) {
  if (machine.route(there, back) && machine.route(back, there))
    return machine.copy_seconds(there, back, 8) + machine.copy_seconds(back, there, 8);
  return machine.copy_seconds(there, host_space, 8) + machine.copy_seconds(host_space, back, 8) +
         machine.copy_seconds(back, host_space, 8) + machine.copy_seconds(host_space, there, 8);
}

/// Seconds of a classic iteration: the difference of a longer and a shorter solve that never
/// converge. Where iterations are recorded, so long ones that they differ by batches of full
/// length.
double seconds_of_iteration(Engine& engine, std::size_t parts) {
  const BoxGrid line{1024, 1, 1, 7};
  const std::int64_t rows = rows_of(line);
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(rows) + 1);
  std::vector<std::int64_t> columns(static_cast<std::size_t>(elements_of(line)));
  std::vector<double> values(columns.size());
  laplacian(line, 0, rows, offsets.data(), columns.data(), values.data(), DType::float64);
  SolverOptions options;
  options.format = Format::csr;
  options.method = CgMethod::classic;
  options.parts = static_cast<int>(parts);
  const Solver solver(engine,
                      {rows, rows, static_cast<std::int64_t>(columns.size()), offsets.data(),
                       columns.data(), values.data(), 8, DType::float64},
                      options);
  const bool is_recorded = solver.plan().recorded;
  const std::int64_t few = is_recorded ? 2 * history_length : 8;
  const std::int64_t many = few + (is_recorded ? 4 : 1) * history_length;
  const std::vector<double> b(static_cast<std::size_t>(rows), 1);
  const auto seconds_of = [&](std::int64_t iterations) {
    std::vector<double> x(b.size());
    SolveOptions limits;
    limits.rtol = 0;
    limits.iterations = iterations;
    const auto begin = std::chrono::steady_clock::now();
    solver.cg(b.data(), x.data(), 1, limits);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  // What is recorded comes the second time.
  for (int i = 0; i < (is_recorded ? 2 : 1); ++i) seconds_of(is_recorded ? many : few);
  double least = seconds_of(few), most = seconds_of(many);
  for (int i = 0; i < 2; ++i) {  // The quickest of three: nobody is held up for ever.
    least = std::min(least, seconds_of(few));
    most = std::min(most, seconds_of(many));
  }
  return std::max(0.0, most - least) / static_cast<double>(many - few);
}

}  // namespace

double slowest_round_trip(const Machine& machine, std::span<const DeviceId> devices) {
  const SpaceId first = machine.devices[devices.front()].space;
  double slowest = 0;
  for (const DeviceId each : devices.subspan(1))
    slowest = std::max(slowest, round_trip(machine, machine.devices[each].space, first));
  return slowest;
}

double waiting_seconds(const Machine& machine, std::span<const DeviceId> devices) {
  constexpr int sums = 2, tasks_of_part = 3;
  if (devices.size() < 2) return 0;
  const double slowest = slowest_round_trip(machine, devices);
  const auto tasks = static_cast<double>(tasks_of_part * devices.size() + sums);
  return sums * slowest + tasks * machine.launch_seconds;
}

double measured_waiting(Engine& engine, std::size_t devices) {
  static auto* const mutex = new std::mutex;
  static auto* const known = new std::map<std::string, double>;
  std::string key = fmt::format("{} of {}", devices, engine.machine().name);
  for (const Device& each : engine.machine().devices) key += " " + each.name;
  {
    const std::lock_guard lock(*mutex);
    if (const auto found = known->find(key); found != known->end()) return found->second;
  }
  try {
    const double seconds = seconds_of_iteration(engine, devices);
    const std::lock_guard lock(*mutex);
    return known->emplace(key, seconds).first->second;
  } catch (const Error&) {
    // Devices that were lost meanwhile, or full: then one of them is best.
    return std::numeric_limits<double>::infinity();
  }
}

}  // namespace quadriga::sparse
