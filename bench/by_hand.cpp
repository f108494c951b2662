// SPDX-License-Identifier: BSD-3-Clause
// bench/by_hand.cpp: commands in the order of their queues, each begun as early as it can be.
#include "by_hand.h"

#include <algorithm>
#include <array>
#include <deque>
#include <limits>

namespace quadriga::bench {
namespace {

enum Part : std::size_t { in, kernel, out };

struct Command {
  std::size_t chunk = 0;
  Part part = in;
};

constexpr double not_yet = std::numeric_limits<double>::infinity();

class Simulation {
 public:
  Simulation(HandWay way, const HandMachine& machine, const std::vector<HandTimes>& chunks)
      : way_(way),
        machine_(machine),
        chunks_(chunks),
        devices_(machine.bus_of.size()),
        ends_(chunks.size(), {not_yet, not_yet, not_yet}) {
    bus_free_.assign(
        static_cast<std::size_t>(*std::ranges::max_element(machine.bus_of)) + std::size_t{1}, 0.0);
  }

  double run() {
    issue();
    double last = 0;
    while (step(last)) {
    }
    return last;
  }

 private:
  /// Copies and kernels are queues of their own; where each chunk is waited for, one is enough.
  struct Device {
    std::deque<Command> copies;
    std::deque<Command> kernels;
    double copies_free = 0;
    double kernels_free = 0;
    bool is_idle() const { return copies.empty() && kernels.empty(); }
  };

  void add(Device& device, std::size_t chunk, Part part) {
    (part == kernel ? device.kernels : device.copies).push_back({chunk, part});
  }
  void add_chunk(Device& device, std::size_t chunk) {
    for (const Part part : {in, kernel, out}) add(device, chunk, part);
  }

  /// What a program issues before it waits for anything; the rest follows when that has ended.
  void issue() {
    const std::size_t count = devices_.size();
    if (way_ == HandWay::naive)
      for (; next_ < chunks_.size(); ++next_) add_chunk(devices_[next_ % count], next_);
    if (way_ == HandWay::threads)
      for (Device& device : devices_)
        if (device.is_idle() && next_ < chunks_.size()) add_chunk(device, next_++);
    if (way_ != HandWay::batches) return;
    const std::size_t end = std::min(chunks_.size(), next_ + machine_.batch * count);
    for (const Part part : {in, kernel, out})
      for (std::size_t chunk = next_; chunk < end; ++chunk)
        add(devices_[chunk % count], chunk, part);
    next_ = end;
  }

  /// When the first command of a queue can begin.
  double begin_of(const std::deque<Command>& queue, double free, double bus_free) const {
    if (queue.empty()) return not_yet;
    const Command& command = queue.front();
    const double input = command.part == in ? batch_begin_ : ends_[command.chunk][command.part - 1];
    return std::max({input, free, bus_free});
  }

  /// Carries out the command that begins first; false if there is none.
  bool step(double& last) {
    double least = not_yet;
    Device* found = nullptr;
    bool is_copy = false;
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      Device& device = devices_[d];
      const double copy = begin_of(device.copies, device.copies_free, bus_of(d));
      const double compute = begin_of(device.kernels, device.kernels_free, 0);
      if (std::min(copy, compute) >= least) continue;
      least = std::min(copy, compute);
      found = &device;
      is_copy = copy < compute;
    }
    if (!found) return false;
    carry_out(*found, is_copy, least, last);
    return true;
  }

  void carry_out(Device& device, bool is_copy, double begin, double& last) {
    std::deque<Command>& queue = is_copy ? device.copies : device.kernels;
    const auto [chunk, part] = queue.front();
    queue.pop_front();
    const HandTimes& times = chunks_[chunk];
    const double end = begin + (part == in ? times.in : part == kernel ? times.kernel : times.out);
    ends_[chunk][part] = end;
    (is_copy ? device.copies_free : device.kernels_free) = end;
    if (is_copy) bus_of(static_cast<std::size_t>(&device - devices_.data())) = end;
    last = std::max(last, end);
    if (way_ == HandWay::batches &&
        !std::ranges::all_of(devices_, [](const Device& each) { return each.is_idle(); }))
      return;
    if (way_ == HandWay::batches) batch_begin_ = last;
    issue();
  }

  double& bus_of(std::size_t device) {
    return bus_free_[static_cast<std::size_t>(machine_.bus_of[device])];
  }

  const HandWay way_;
  const HandMachine& machine_;
  const std::vector<HandTimes>& chunks_;
  std::vector<Device> devices_;
  std::vector<std::array<double, 3>> ends_;  ///< By chunk and part.
  std::vector<double> bus_free_;
  std::size_t next_ = 0;
  double batch_begin_ = 0;
};

}  // namespace

double by_hand(HandWay way, const HandMachine& machine, const std::vector<HandTimes>& chunks) {
  return Simulation(way, machine, chunks).run();
}

}  // namespace quadriga::bench
