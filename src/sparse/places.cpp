// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/places.cpp: which devices get parts, and how large; work for the host's threads.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/config.h"
#include "base/thread.h"
#include "device/kinds.h"
#include "engine/engine_access.h"
#include "sparse/content.h"
#include "sparse/device_choice.h"
#include "sparse/kernels/scalar_codelets.h"

namespace quadriga::sparse {
namespace {

/// Bytes a second of a device's memory, where the machine's table says; else the same for all.
double rate_of(const Machine& machine, const Device& device) {
  constexpr double gigabyte = 1e9;
  const Cost cost = Cost::of_work(0, gigabyte);
  if (!machine.has_kernel(device, cost.kernel)) return 1;
  return gigabyte / machine.kernel_seconds(device, cost.kernel, cost.order, cost.volume);
}

/// Whether tasks of a solver may run there: its codelets have the same variants, one and all.
bool runs_solvers(DeviceKind kind) {
  return is_accelerator(kind) && snapshot_codelet().variant(variants_of(kind));
}

Places host_places(const Machine& machine, int wanted) {
  int cores = 0;
  for (const Device& device : machine.devices) cores += device.cores;
  const auto count = static_cast<std::size_t>(std::max(1, wanted > 0 ? wanted : cores));
  return {std::vector<DeviceId>(count, no_device), std::vector<double>(count, 1.0)};
}

/// A part that takes more than this share of a device's memory leaves too little for others.
constexpr double largest_memory_share = 0.25;
/// A device that holds all of its parts and vectors keeps this much for them.
constexpr double resident_share = 0.7;

int parts_of_device(double bytes, double memory_bytes) {
  if (memory_bytes <= 0 || bytes <= resident_share * memory_bytes) return 1;
  return static_cast<int>(std::ceil(bytes / (largest_memory_share * memory_bytes)));
}

/// What the machine's figures say that waiting takes is too little by less than this factor: a
/// larger saving needs no measurement.
constexpr double largest_error = 20;
/// Of an iteration: cores that save less may as well not.
constexpr double least_share_saved = 0.03;

/// The fastest devices, as many as make an iteration shortest; all where rates aren't known.
std::vector<DeviceId> worthwhile(Engine& engine, std::vector<DeviceId> devices, double bytes) {
  const Machine& machine = engine.machine();
  const auto rate = [&](DeviceId device) { return rate_of(machine, machine.devices[device]); };
  const auto has_rate = [&](DeviceId device) {
    return machine.has_kernel(machine.devices[device], Cost::of_work(0, 0).kernel);
  };
  if (devices.size() < 2 || !std::ranges::all_of(devices, has_rate)) return devices;
  constexpr double never = std::numeric_limits<double>::infinity();
  std::vector<DeviceId> ordered = devices;
  std::ranges::stable_sort(ordered, std::greater{}, rate);
  std::size_t best = devices.size();
  double alone = never, shortest = never, best_reads = 0, best_waits = 0, rates = 0, memory = 0;
  for (std::size_t count = 1; count <= ordered.size(); ++count) {
    const Device& added = machine.devices[ordered[count - 1]];
    rates += rate(ordered[count - 1]);
    memory += static_cast<double>(added.memory_bytes);
    if (added.memory_bytes > 0 && bytes > resident_share * memory) continue;
    const double reads = bytes / rates;
    const double waits = waiting_seconds(machine, std::span(ordered).first(count));
    if (count == 1) alone = reads;
    if (reads + waits >= shortest) continue;
    shortest = reads + waits;
    best = count;
    best_reads = reads;
    best_waits = waits;
  }
  const bool is_real = !engine.options().virtual_clock;
  if (is_real && best > 1 && alone < best_reads + largest_error * best_waits &&
      alone <= best_reads + measured_waiting(engine, best))
    best = 1;
  // In their own order, so that neighbours stay neighbours.
  const auto is_left_out = [&](DeviceId device) {
    return std::ranges::find(ordered, device) - ordered.begin() >=
           static_cast<std::ptrdiff_t>(best);
  };
  std::erase_if(devices, is_left_out);
  return devices;
}

/// What an iteration takes by the machine's figures: reading, and waiting for each other.
double seconds_of_iteration(const Machine& machine, std::span<const DeviceId> devices, double bytes,
                            double waiting_factor) {
  double rates = 0;
  for (const DeviceId each : devices) rates += rate_of(machine, machine.devices[each]);
  return bytes / rates + waiting_factor * waiting_seconds(machine, devices);
}

/// Adds the host's cores, a part each, where they shorten an iteration. The saving is less what
/// crosses their links, which whoever cuts the rows must look at.
double add_cores(Engine& engine, std::vector<DeviceId>& devices, double bytes) {
  const Machine& machine = engine.machine();
  const auto has_rate = [&](const Device& device) {
    return machine.has_kernel(device, Cost::of_work(0, 0).kernel);
  };
  const auto cpu = std::ranges::find_if(machine.devices, [&](const Device& each) {
    return each.kind == DeviceKind::cpu && each.cores > 0 && has_rate(each);
  });
  if (cpu == machine.devices.end()) return 0;
  for (const DeviceId each : devices)
    if (!has_rate(machine.devices[each])) return 0;
  std::vector<DeviceId> joined = devices;
  joined.insert(joined.end(), static_cast<std::size_t>(cpu->cores),
                static_cast<DeviceId>(cpu - machine.devices.begin()));
  const double factor = engine.options().virtual_clock ? 1 : largest_error;
  const double before = seconds_of_iteration(machine, devices, bytes, factor);
  const double after = seconds_of_iteration(machine, joined, bytes, factor);
  if (!(after < (1 - least_share_saved) * before)) return 0;
  devices = std::move(joined);
  return before - after;
}

/// By this thread and others that start for it: as many as cores compute where an engine has some.
void run_on_threads(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;  // Guarded by mutex.
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        next = count;
      }
  };
  std::vector<std::thread> others;
  const std::size_t threads = std::min(count, static_cast<std::size_t>(computing_cores()));
  others.reserve(threads);
  try {
    while (others.size() + 1 < threads) others.push_back(start_thread("quadriga setup", run));
  } catch (const Error&) {
    // Those that are there do it all.
  }
  run();
  for (std::thread& each : others) each.join();
  if (failure) std::rethrow_exception(failure);
}

/// Whether tasks of the host have more than a stream for what devices need of it.
bool computes_on_cores(const Machine& machine) {
  return std::ranges::any_of(machine.devices, [](const Device& each) {
    return each.kind == DeviceKind::cpu && each.cores > 0;
  });
}

}  // namespace

Places choose_places(Engine& engine, const PlacesWanted& asked) {
  const auto& [wanted, bytes, may_leave_out, may_add_cores] = asked;
  const Machine& machine = engine.machine();
  std::vector<DeviceId> devices;
  bool has_cores = false;
  for (std::size_t d = 0; d < machine.devices.size(); ++d) {
    has_cores |= machine.devices[d].kind == DeviceKind::cpu;
    if (runs_solvers(machine.devices[d].kind)) devices.push_back(static_cast<DeviceId>(d));
  }
  if (devices.empty() && !has_cores)
    fail(Errc::unavailable,
         "sparse solvers run on CPU cores, GPUs and emulated devices; this engine has none "
         "(devices: \"cpu\" adds cores)");
  if (devices.empty()) return host_places(machine, wanted);
  if (wanted == 0 && may_leave_out) devices = worthwhile(engine, std::move(devices), bytes);
  Places places;
  if (wanted == 0 && may_leave_out && may_add_cores)
    places.saved_by_cores = add_cores(engine, devices, bytes);
  double total = 0;
  for (const DeviceId device : devices) total += rate_of(machine, machine.devices[device]);
  const auto count = static_cast<int>(devices.size());
  for (int i = 0; i < count; ++i) {
    const Device& device = machine.devices[devices[static_cast<std::size_t>(i)]];
    const double share = rate_of(machine, device) / total;
    const int parts =
        wanted > 0 ? wanted * (i + 1) / count - wanted * i / count
                   : parts_of_device(share * bytes, static_cast<double>(device.memory_bytes));
    for (int part = 0; part < parts; ++part) {
      places.devices.push_back(devices[static_cast<std::size_t>(i)]);
      places.weights.push_back(share / parts);
    }
  }
  return places;
}

void run_on_host(Engine& engine, std::size_t count, const std::function<void(std::size_t)>& work) {
  if (!computes_on_cores(engine.machine()) && !engine.options().virtual_clock)
    return run_on_threads(count, work);
  struct Params {
    std::size_t index;
  };
  std::mutex mutex;
  std::exception_ptr failure;
  Codelet codelet{"sparse_setup", {}};
  codelet.host_only = true;
  codelet.cost = [](const Arguments&) { return Cost::of_seconds(0); };
  codelet.cpu = [&](const Arguments& arguments) {
    try {
      work(arguments.param<Params>().index);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  TaskGroup group;
  struct Ending {
    Engine& engine;
    TaskGroup& group;
    ~Ending() { EngineAccess::cancel(engine, group); }
  };
  {
    const Ending ending{engine, group};
    for (std::size_t i = 0; i < count; ++i) {
      const Params params{i};
      EngineAccess::submit(engine, codelet, {}, std::as_bytes(std::span(&params, 1)), {}, &group);
    }
    EngineAccess::wait(engine, group, {});
  }
  if (failure) std::rethrow_exception(failure);
}

RunAll on_host(Engine& engine) {
  return [&engine](std::size_t count, const std::function<void(std::size_t)>& work) {
    run_on_host(engine, count, work);
  };
}

}  // namespace quadriga::sparse
