// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/chunk_size.cpp: the least time over numbers of chunks that fit.
#include "pipeline/chunk_size.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "pipeline/links.h"
#include "pipeline/load.h"
#include "pipeline/row_load.h"

namespace quadriga {
namespace {

/// Chunks that one body or core gets at least: at the end others wait for half of one, 1.6 %.
constexpr double chunks_a_lane = 32;
/// Steps between two numbers of chunks that are tried: an eighth of a doubling.
const double step = std::exp2(1.0 / 8);

/// What a chunk needs on its way.
struct Needs {
  ChunkLoad load;
  double device_bytes = 0;
  double host_bytes = 0;
  double kernels = 0;  ///< Their number.
};

/// Linear in the rows.
struct NeedsByRows {
  Needs one;
  Needs two;

  double at(double rows, double of_one, double of_two) const {
    return std::max(0.0, of_one + (of_two - of_one) * (rows - 1));
  }
  ChunkLoad load(double rows) const {
    ChunkLoad made{at(rows, one.load.bytes_in, two.load.bytes_in),
                   at(rows, one.load.bytes_out, two.load.bytes_out)};
    for (std::size_t d = 0; d < one.load.kernel_seconds.size(); ++d)
      made.kernel_seconds.push_back(
          at(rows, one.load.kernel_seconds[d], two.load.kernel_seconds[d]));
    return made;
  }
};

Needs needs_on(const Machine& machine, const std::vector<DeviceId>& devices, const StagePlan& plan,
               const Chunk& like) {
  const Chunk chunk = plan.completed(like);
  const StageSet passed = plan.passed_by(chunk);
  Needs needs;
  needs.load.kernel_seconds.assign(devices.size(), 0.0);
  needs.host_bytes = static_cast<double>(chunk.bytes() + plan.returned_bytes(chunk, passed));
  for (const Segment& segment : plan.segments()) {
    if (segment.kind != StageKind::kernel) continue;
    const KernelRow row(plan.stages(), segment, passed);
    add_bytes(needs.load, row, chunk);
    needs.device_bytes =
        std::max(needs.device_bytes, static_cast<double>(needs_of(row, chunk).bytes));
    for (const KernelRow::Kernel& kernel : row.kernels) {
      ++needs.kernels;
      add_seconds(needs.load.kernel_seconds, plan.stages()[kernel.stage], chunk, {}, machine,
                  devices);
    }
  }
  return needs;
}

class ChunkSize {
 public:
  ChunkSize(const Machine& machine, const FlowOptions& options, std::vector<DeviceId> devices,
            NeedsByRows needs, double rows)
      : machine_(machine),
        options_(options),
        devices_(std::move(devices)),
        needs_(std::move(needs)),
        rows_(rows),
        on_host_(devices_.empty() || machine.devices[devices_.front()].space == host_space) {}

  /// The most rows of a chunk with which as many fit as are in flight; not less than one.
  double most_rows() const {
    const StreamMachine found = stream_machine(machine_, devices_);
    double most = rows_;
    double in_flight = 1;
    for (const StreamDevice& device : found.devices) {
      const double count =
          options_.most_on_device > 0 ? options_.most_on_device : device.most_chunks;
      in_flight += count;
      if (on_host_) continue;
      double memory = static_cast<double>(device.memory_bytes);
      if (options_.memory_bytes > 0)
        memory = std::min(memory, static_cast<double>(options_.memory_bytes));
      most =
          std::min(most, fitting(memory / count, needs_.one.device_bytes, needs_.two.device_bytes));
    }
    if (options_.host_bytes > 0)
      most = std::min(most, fitting(static_cast<double>(options_.host_bytes) / in_flight,
                                    needs_.one.host_bytes, needs_.two.host_bytes));
    return std::max(1.0, std::floor(most));
  }

  double best_rows() const {
    const double most = most_rows();
    if (on_host_) return std::clamp(std::ceil(rows_ / (chunks_a_lane * lanes())), 1.0, most);
    double best = most;
    double least = std::numeric_limits<double>::infinity();
    const double devices = static_cast<double>(devices_.size());
    // As many for each device: with few chunks one more than that is a whole turn.
    for (double turns = std::ceil(rows_ / most / devices); turns * devices <= rows_;
         turns = std::max(turns + 1, std::floor(turns * step))) {
      const double chunks = turns * devices;
      const double seconds = seconds_of(chunks);
      if (seconds > 2 * least) break;
      if (seconds >= least) continue;
      least = seconds;
      best = std::ceil(rows_ / chunks);
    }
    return best;
  }

 private:
  static double fitting(double bytes, double of_one, double of_two) {
    const double a_row = of_two - of_one;
    return a_row > 0 ? 1 + (bytes - of_one) / a_row : std::numeric_limits<double>::infinity();
  }

  double lanes() const {
    double sum = 0;
    for (const DeviceId id : devices_) sum += std::max(1, machine_.devices[id].cores);
    return std::max<double>(sum, devices_.empty() ? options_.threads : 1);
  }

  /// The bound of a run in so many chunks, and what each of them costs.
  double seconds_of(double chunks) const {
    StreamLoad load(machine_, devices_);
    load.add(needs_.load(rows_ / chunks), static_cast<std::size_t>(chunks));
    double costs = 0;
    for (const DeviceId id : devices_) {
      const SpaceId space = machine_.devices[id].space;
      const double in = needs_.one.load.bytes_in > 0 ? latency(host_space, space) : 0;
      const double out = needs_.one.load.bytes_out > 0 ? latency(space, host_space) : 0;
      costs = std::max(costs, std::max(in, out) + needs_.one.kernels * machine_.launch_seconds);
    }
    const double devices = static_cast<double>(devices_.size());
    return stream_bound(load.resources(), devices_.size()).seconds + chunks / devices * costs;
  }

  double latency(SpaceId from, SpaceId to) const { return machine_.copy_seconds(from, to, 0); }

  const Machine& machine_;
  const FlowOptions& options_;
  const std::vector<DeviceId> devices_;
  const NeedsByRows needs_;
  const double rows_;
  const bool on_host_;
};

}  // namespace

std::int64_t choose_rows(const Machine& machine, const StagePlan& plan, const FlowOptions& options,
                         const Chunk& one, const Chunk& two, std::int64_t rows) {
  std::vector<DeviceId> devices;
  if (plan.has_kernels()) devices = usable_devices(machine, plan.stages());
  NeedsByRows needs{needs_on(machine, devices, plan, one), needs_on(machine, devices, plan, two)};
  const ChunkSize size(machine, options, std::move(devices), std::move(needs),
                       static_cast<double>(std::max<std::int64_t>(1, rows)));
  return static_cast<std::int64_t>(size.best_rows());
}

}  // namespace quadriga
