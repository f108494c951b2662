// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/shared_speed.h: kernels that a device runs at once and that share its speed. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <queue>
#include <vector>

namespace quadriga::linalg {

class SharedSpeed {
 public:
  std::size_t running() const noexcept { return running_.size(); }
  /// When a kernel last began or ended.
  double now() const noexcept { return now_; }
  /// When the next one ends if none begins before; infinite if none runs.
  double next_end() const {
    if (running_.empty()) return std::numeric_limits<double>::infinity();
    return now_ + (running_.top().work - work_) * static_cast<double>(running_.size());
  }
  void begin(std::uint32_t step, double seconds, double time) {
    advance(time);
    running_.push({work_ + seconds, step});
  }
  /// Ends that one, and returns it.
  std::uint32_t end(double time) {
    advance(time);
    const std::uint32_t step = running_.top().step;
    running_.pop();
    return step;
  }

 private:
  struct Running {
    double work = 0;  ///< Of the device for each of its kernels, when this one ends.
    std::uint32_t step = 0;
  };
  struct Longer {
    bool operator()(const Running& a, const Running& b) const { return a.work > b.work; }
  };
  void advance(double time) {
    if (!running_.empty()) work_ += (time - now_) / static_cast<double>(running_.size());
    now_ = time;
  }

  double now_ = 0;
  double work_ = 0;  ///< Of the device for each kernel that ran all along till then.
  std::priority_queue<Running, std::vector<Running>, Longer> running_;
};

}  // namespace quadriga::linalg
