// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/cholesky_schedule.cpp: list schedules of Cholesky factorizations that devices hold.
#include "linalg/cholesky_schedule.h"
#include "linalg/real.h"

#include "linalg/shared_speed.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <queue>
#include <vector>

namespace quadriga::linalg {
namespace {

using Kind = Step::Kind;

std::size_t place(std::int64_t index) noexcept { return static_cast<std::size_t>(index); }

double seconds_of(const CholeskyShape& shape, Kind kind) noexcept {
  switch (kind) {
    case Kind::potrf:
      return shape.potrf_seconds;
    case Kind::trsm:
      return shape.trsm_seconds;
    case Kind::syrk:
      return shape.syrk_seconds;
    case Kind::gemm:
      return shape.gemm_seconds;
  }
  return 0;
}

/// The steps on tile (i,j) are its updates by columns 0 to j-1, then potrf or trsm.
class DecidedSteps {
 public:
  DecidedSteps(const CholeskyTimes& times, double limit)
      : times_(times),
        tiles_(times.shape.tiles),
        limit_(limit),
        last_(real(times.tiling.length(tiles_ - 1)) / real(times.tiling.tile)),
        columns_(tiles_of_all(), Tile{}),
        devices_(place(times.shape.devices)) {
    for (Device& device : devices_) device.streams = place(times.streams);
    factor_at_.assign(columns_.size() * devices_.size(), endless);
    steps_.resize(place(tiles_ * (tiles_ + 1) * (tiles_ + 2) / 6));
    std::uint32_t first = 0;
    for (std::int64_t j = 0; j < tiles_; ++j)
      for (std::int64_t i = j; i < tiles_; ++i) {
        tile(i, j).first = first;
        first += static_cast<std::uint32_t>(j + 1);
      }
    cholesky_order(times.shape, [&](const Step& step) { submit(step); });
  }

  double run() {
    for (std::int64_t j = 0; j < tiles_; ++j)
      for (std::int64_t i = j; i < tiles_; ++i) offer(i, j);
    double end = 0;
    while (Device* const device = next()) {
      const double time = device->event(issued_);
      if (time + left_ / real(times_.shape.devices) >= limit_) return endless;
      if (device->begins(issued_)) {
        const Waiting task = device->take(time);
        device->kernels.begin(task.step, seconds(steps_[task.step]), time);
        issued_ = time + times_.task_seconds;
      } else {
        const Step& step = steps_[device->kernels.end(time)];
        left_ -= seconds(step);
        end = std::max(end, finish(step, time));
      }
    }
    return end < limit_ ? end : endless;
  }

 private:
  struct Tile {
    std::uint32_t first = 0;    ///< Of its steps.
    std::uint32_t done = 0;     ///< Of them,
    std::uint32_t offered = 0;  ///< and given to its device.
    double ready = endless;     ///< When its content is there, or its last step was done.
  };
  struct Waiting {
    double start = 0;
    std::int32_t priority = 0;
    std::uint32_t number = 0;  ///< As submitted.
    std::uint32_t step = 0;
  };
  struct Later {
    bool operator()(const Waiting& a, const Waiting& b) const { return a.start > b.start; }
  };
  struct LessUrgent {
    bool operator()(const Waiting& a, const Waiting& b) const {
      return a.priority != b.priority ? a.priority < b.priority : a.number > b.number;
    }
  };
  struct Device {
    double loading = 0;    ///< When its links can begin another copy: from home,
    double storing = 0;    ///< to it,
    double receiving = 0;  ///< and from other devices.
    std::size_t streams = 1;
    SharedSpeed kernels;
    std::priority_queue<Waiting, std::vector<Waiting>, Later> coming;
    std::priority_queue<Waiting, std::vector<Waiting>, LessUrgent> ready;

    double next_begin(double issued) const {
      if (kernels.running() >= streams) return endless;
      double start = ready.empty() ? endless : kernels.now();
      if (!coming.empty()) start = std::min(start, coming.top().start);
      return std::max({start, kernels.now(), issued});
    }
    bool begins(double issued) const { return next_begin(issued) < kernels.next_end(); }
    double event(double issued) const { return std::min(next_begin(issued), kernels.next_end()); }
    Waiting take(double time) {
      for (; !coming.empty() && coming.top().start <= time; coming.pop()) ready.push(coming.top());
      const Waiting task = ready.top();
      ready.pop();
      return task;
    }
  };

  std::size_t tiles_of_all() const { return place(tiles_ * tiles_); }
  std::size_t at(std::int64_t i, std::int64_t j) const { return place(i + j * tiles_); }
  Tile& tile(std::int64_t i, std::int64_t j) { return columns_[at(i, j)]; }
  std::size_t device_of(const Step& step) const {
    const std::size_t owner = place(step.owner);
    return times_.device_of_place.empty() ? owner : place(times_.device_of_place[owner]);
  }
  double slower(std::size_t device) const {
    return times_.slower.empty() ? 1 : times_.slower[device];
  }
  double& factor_at(std::int64_t i, std::int64_t j, std::size_t device) {
    return factor_at_[at(i, j) * devices_.size() + device];
  }
  double length(std::int64_t index) const { return index + 1 == tiles_ ? last_ : 1; }
  double seconds(const Step& step) const {
    return times_.task_seconds + seconds_of(times_.shape, step.kind) * length(step.i) *
                                     length(step.j) * length(step.k) * slower(device_of(step));
  }

  void submit(const Step& step) {
    Tile& target = tile(step.i, step.j);
    Device& device = devices_[device_of(step)];
    if (target.ready == endless)
      target.ready = device.loading +=
          times_.links[device_of(step)].load * length(step.i) * length(step.j);
    const bool updates = step.kind == Kind::syrk || step.kind == Kind::gemm;
    const std::uint32_t index =
        target.first + static_cast<std::uint32_t>(updates ? step.k : step.j);
    steps_[index] = step;
    numbers_.resize(steps_.size());
    numbers_[index] = submitted_++;
    left_ += seconds(step);
  }

  /// The next step on a tile, once what it reads is done and on its way.
  void offer(std::int64_t i, std::int64_t j) {
    Tile& target = tile(i, j);
    if (target.done > static_cast<std::uint32_t>(j) || target.offered > target.done) return;
    const std::uint32_t index = target.first + target.done;
    const Step& step = steps_[index];
    const std::size_t device = device_of(step);
    double start = target.ready;
    if (step.kind == Kind::trsm) start = std::max(start, factor_at(j, j, device));
    if (step.kind == Kind::syrk || step.kind == Kind::gemm)
      start = std::max({start, factor_at(i, step.k, device), factor_at(j, step.k, device)});
    if (start == endless) return;
    target.offered = target.done + 1;
    devices_[device].coming.push({start, step.priority, numbers_[index], index});
  }

  /// The device on which a task begins or ends first; null: all is done.
  Device* next() {
    Device* first = nullptr;
    double least = endless;
    for (Device& device : devices_) {
      const double time = device.event(issued_);
      if (time >= least) continue;
      least = time;
      first = &device;
    }
    return first;
  }

  /// Returns when the tile is home if that was its last step.
  double finish(const Step& step, double time) {
    Tile& target = tile(step.i, step.j);
    ++target.done;
    target.ready = time;
    if (step.kind == Kind::syrk || step.kind == Kind::gemm) {
      offer(step.i, step.j);
      return time;
    }
    const double size = length(step.i) * length(step.j);
    factor_at(step.i, step.j, device_of(step)) = time;
    if (step.kind == Kind::potrf)
      for (std::int64_t i = step.j + 1; i < tiles_; ++i) read(step, i, step.j, time, size);
    for (std::int64_t j = step.j + 1; j <= step.i; ++j) read(step, step.i, j, time, size);
    for (std::int64_t i = step.i + 1; i < tiles_ && step.i > step.j; ++i)
      read(step, i, step.i, time, size);
    Device& device = devices_[device_of(step)];
    device.storing = std::max(device.storing, time) + times_.links[device_of(step)].store * size;
    return device.storing;
  }

  /// A tile of the factor is read by steps on (i,j): it goes to their device if it isn't there.
  void read(const Step& by, std::int64_t i, std::int64_t j, double time, double size) {
    const std::size_t device = device_of(steps_[tile(i, j).first]);
    double& there = factor_at(by.i, by.j, device);
    if (there == endless) {
      double& link = devices_[device].receiving;
      there = link = std::max(link, time) + times_.links[device].receive * size;
    }
    offer(i, j);
  }

  const CholeskyTimes& times_;
  std::int64_t tiles_;
  double limit_;
  double last_;        ///< Length of the last tile over that of others.
  double left_ = 0;    ///< Seconds of steps that haven't ended.
  double issued_ = 0;  ///< When the next task may be issued.
  std::uint32_t submitted_ = 0;
  std::vector<Step> steps_;
  std::vector<std::uint32_t> numbers_;  ///< Of steps, as they are submitted.
  std::vector<Tile> columns_;
  std::vector<double> factor_at_;  ///< When a tile of the factor is on each device.
  std::vector<Device> devices_;
};

struct Work {
  double seconds = 0;  ///< Of all kernels, one after the other,
  double tiles = 0;    ///< and tiles that come.
};

/// Of columns first to end, with what columns on their left do to them.
Work work_of(const CholeskyTimes& times, std::int64_t first, std::int64_t end) {
  const CholeskyShape& shape = times.shape;
  Work work;
  for (std::int64_t j = first; j < end; ++j) {
    const double below = real(shape.tiles - j - 1);
    work.seconds += shape.potrf_seconds + below * shape.trsm_seconds +
                    real(j) * (shape.syrk_seconds + below * shape.gemm_seconds);
    work.tiles += below + 1;
  }
  work.tiles += real(first) * real(shape.tiles - first);
  return work;
}

/// In devices as quick as the first.
double speed_of(const CholeskyTimes& times) {
  if (times.slower.empty()) return real(times.shape.devices);
  double speed = 0;
  for (const double slower : times.slower) speed += 1 / slower;
  return speed;
}

/// To bring a tile, of many that all devices share as their links allow.
double load_seconds(const CholeskyTimes& times) {
  double rate = 0;
  for (const CholeskyLinks& links : times.links) {
    if (links.load <= 0) return 0;
    rate += 1 / links.load;
  }
  return rate > 0 ? 1 / rate : 0;
}

/// Kernels are of whole tiles here, but the last tile is shorter.
double part_in_use(const CholeskyTimes& times) {
  return std::pow(real(times.tiling.size) / (real(times.shape.tiles) * real(times.tiling.tile)), 3);
}

}  // namespace

double cholesky_bound(const CholeskyTimes& times) {
  const Work all = work_of(times, 0, times.shape.tiles);
  const double loads = real(times.shape.tiles * (times.shape.tiles + 1) / 2) * load_seconds(times);
  const double tasks = static_cast<double>(times.shape.tiles) *
                       real((times.shape.tiles + 1) * (times.shape.tiles + 2) / 6);
  return std::max({part_in_use(times) * all.seconds / speed_of(times), part_in_use(times) * loads,
                   tasks * times.task_seconds});
}

double cholesky_seconds(const CholeskyTimes& times, double limit) {
  if (times.shape.tiles == 0) return 0;
  const std::vector<std::int64_t> widths = cholesky_blocks(times.shape);
  double copies = 0;
  std::int64_t first = 0;
  for (const std::int64_t width : widths) {
    const Work block = work_of(times, first, first + width);
    copies += block.tiles * load_seconds(times);
    first += width;
  }
  if (copies >= limit) return endless;
  return std::max(copies, DecidedSteps(times, limit).run());
}

}  // namespace quadriga::linalg
