// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/policies/weight.cpp: the policy weight: where most of a task's data is, else the
// least work by the devices' weights.
#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include <quadriga/machine.h>

#include "device/kinds.h"
#include "schedule/policies/built_in.h"

namespace quadriga {
namespace {

using Column = std::map<double, double>;

/// Null if the table lacks the kernel for this device.
const Column* column_of(const std::map<std::string, Column>& kernel, const Device& device) {
  const auto found = kernel.find(device.rates);
  return found == kernel.end() || found->second.empty() ? nullptr : &found->second;
}

bool runs_nothing(const Device& device) { return properties_of(device.kind).only_stores; }

/// What a task costs on each device, whatever it does: the time of an average kernel at the order
/// where the table ends, from those kernels that it has for all; a CPU's cores share its tasks.
std::vector<double> weights_of(const Machine& machine) {
  std::vector<double> logarithms(machine.devices.size(), 0);
  double kernels = 0;
  for (const auto& [name, kernel] : machine.kernels) {
    const auto has_it = [&](const Device& device) {
      return runs_nothing(device) || column_of(kernel, device) != nullptr;
    };
    if (!std::ranges::all_of(machine.devices, has_it)) continue;
    ++kernels;
    for (std::size_t i = 0; i < machine.devices.size(); ++i) {
      if (runs_nothing(machine.devices[i])) continue;
      const auto& [order, seconds] = *column_of(kernel, machine.devices[i])->rbegin();
      logarithms[i] += std::log(seconds) - 3 * std::log(order);
    }
  }
  std::vector<double> weights;
  for (std::size_t i = 0; i < machine.devices.size(); ++i)
    weights.push_back(std::exp(logarithms[i] / std::max(kernels, 1.0)) /
                      std::max(machine.devices[i].cores, 1));
  return weights;
}

/// All tasks count alike; a device's workload is the number of those that were placed there and
/// haven't ended, times its weight. A device with more than half of a task's bytes is preferred to
/// the one with the least workload. Idle devices take what they end sooner.
///
/// Source:  Wu, Programming and communication models for clusters of GPUs, 2016, section 3.6.
class Weight final : public Policy {
 public:
  explicit Weight(const Machine& machine)
      : weights_(weights_of(machine)), tasks_(weights_.size(), 0) {}

  PolicyTraits traits() const override { return {.follows_tasks = true}; }

  void ended(std::uint64_t id) override {
    const auto found = placed_.find(id);
    if (found == placed_.end()) return;
    --tasks_[static_cast<std::size_t>(found->second)];
    placed_.erase(found);
  }

  std::size_t place(const PlaceQuestion& question) override {
    double bytes = 0;
    for (const OperandView& operand : question.task.operands)
      bytes += static_cast<double>(operand.bytes);
    std::size_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    bool has_most = false;
    for (std::size_t i = 0; i < question.candidates.size(); ++i) {
      const PlaceCandidate& c = question.candidates[i];
      const auto device = static_cast<std::size_t>(c.device);
      const double work = static_cast<double>(tasks_[device] + 1) * weights_[device];
      const bool has_it = c.bytes_here * 2 > bytes;
      if (has_it < has_most || (has_it == has_most && work >= least)) continue;
      has_most = has_it;
      least = work;
      best = i;
    }
    const DeviceId chosen = question.candidates[best].device;
    const auto [entry, is_new] = placed_.try_emplace(question.task.id, chosen);
    if (!is_new) --tasks_[static_cast<std::size_t>(entry->second)];
    entry->second = chosen;
    ++tasks_[static_cast<std::size_t>(chosen)];
    return best;
  }

  std::size_t victim(const StealQuestion& question) override {
    return most_queued(question.queued);
  }
  std::size_t choose(std::span<const StealCandidate> candidates) override {
    return greatest_gain(candidates);
  }

 private:
  std::vector<double> weights_;                         ///< By device.
  std::vector<std::int64_t> tasks_;                     ///< By device.
  std::unordered_map<std::uint64_t, DeviceId> placed_;  ///< Of tasks that haven't ended.
};

}  // namespace

std::unique_ptr<Policy> make_weight(const PolicyContext& context) {
  return std::make_unique<Weight>(context.machine);
}

}  // namespace quadriga
