// SPDX-License-Identifier: BSD-3-Clause
// src/device/factory.h: creates the backends.
#pragma once

#include <quadriga/machine.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/backend.h"

namespace quadriga {

/// How a virtual backend behaves.
struct VirtualOptions {
  /// Run the variants and move the bytes; else memory is addresses only, and nothing is touched.
  bool compute = true;
  /// While a variant runs, close every page of every device's memory that holds none of its
  /// operands; a variant that touches one is stopped and fails. Needs compute.
  bool protect = false;
  /// Durations are multiplied by a factor drawn from [1 - noise, 1 + noise]; below 1.
  double noise = 0;
  std::uint64_t seed = 0;  ///< Of the noise.
};

/// How an emulated backend behaves.
struct EmulatedOptions {
  int cores = 0;  ///< Kernels that may run at once on all devices; 0: the cores of this process.
  /// Devices' memory lies in memory files, which other processes can map.
  bool shares_memory = false;
};

/// Simulates the machine by discrete events: one thread, integer nanoseconds, repeatable.
///
/// Copies read their source and write their target at their end, and variants run at theirs, so
/// that work which doesn't wait for what it needs meets old content. Copies take the sum of their
/// links' latencies, then share links max-min fairly. At most compute_streams kernels of a device
/// run at once, panel streams first; on accelerators they share its speed. Copies of a device wait
/// for one of its copy_engines, and commands for those in front in its hardware_queues.
std::unique_ptr<Backend> make_virtual_backend(Machine machine, VirtualOptions options = {});

/// Runs copies and kernels on threads of this process, by the real clock, copies paced to the
/// rates of the machine's links, bounded by its devices' memory, copy_engines and hardware_queues.
std::unique_ptr<Backend> make_emulated_backend(Machine machine, EmulatedOptions options = {});

/// Runs kernels on the cores of this computer, on the user's memory.
std::unique_ptr<Backend> make_cpu_backend(Machine machine);

struct BackendOptions {
  bool virtual_clock = false;
  VirtualOptions virtual_options;
  EmulatedOptions emulated_options;
};

/// The backend that can drive all devices of the machine: that of their kind (device/kinds.h), or
/// those of their kinds joined.
/// Errors:  unavailable if nothing drives a kind, or a route joins memories of two kinds.
std::unique_ptr<Backend> make_backend(const Machine& machine, const BackendOptions& options = {});

/// What goes wrong, and when. Numbers count calls from 1, successful or not.
struct FaultPlan {
  std::vector<std::uint64_t> allocations = {};  ///< These return null.
  std::vector<std::uint64_t> copies = {};       ///< These move nothing and complete with io.
  std::vector<std::uint64_t> launches = {};     ///< These don't run and complete with task_failed.
  std::vector<std::uint64_t> refused_launches = {};  ///< The same, and complete with unavailable.
  double allocation_probability = 0;                 ///< The same, drawn for each call.
  double copy_probability = 0;
  double launch_probability = 0;
  std::uint64_t seed = 0;
  /// A device after `operations` copies and kernels that were queued on it or touch its memory:
  /// later ones complete with device_lost and do nothing; allocations on it return null.
  struct Loss {
    DeviceId device = no_device;
    std::uint64_t operations = 0;
  };
  std::vector<Loss> losses = {};
};

/// The same backend with faults.
std::unique_ptr<Backend> make_faulty_backend(std::unique_ptr<Backend> backend, FaultPlan plan);

}  // namespace quadriga
