// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/kernel_history.h: what tasks took and where they went, by codelet, order of size and
// kind of device: what is known of those whose cost no table gives.
//
// A time is the mean of the last 15 without those that took more than four times their median: a
// task that something else held up doesn't count, or a kind of device that is believed slow would
// get no more tasks that could tell otherwise. Of two the quicker counts: the first may have
// prepared what others find. What the machine's table states isn't replaced by measured times.
//
// Pure: knows no thread, device or clock.
// Source:  Augonnet, Thibault, Namyst, Automatic calibration of performance models on heterogeneous
// multicore architectures, Euro-Par Workshops 2009.
#pragma once

#include <quadriga/codelet.h>
#include <quadriga/policy.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace quadriga {

/// Tasks of one codelet whose operands have, within a factor of two, as many bytes.
class TaskHistory {
 public:
  /// What one takes on such a device: as measured there, else elsewhere, else as its codelet's
  /// other sizes took; 0 if nothing is known.
  double seconds(DeviceKind kind) const;
  /// What a policy may know, but for `learns`.
  Experience experience(DeviceKind kind) const;

  void chosen() { ++placed_; }
  void put(DeviceKind kind) { ++on(kind).under_way; }
  void taken(DeviceKind kind) { --on(kind).under_way; }
  void measured(DeviceKind kind, double seconds);
  /// Begins with the times of another size as guesses.
  void guess_from(const TaskHistory& other);

 private:
  static constexpr std::size_t most_samples = 15;
  struct Kind {
    std::int64_t under_way = 0;
    std::int64_t ended = 0;
    double seconds = 0;  ///< A guess as long as none ended.
    /// The last that were measured, the newest at (measured - 1) % most_samples.
    std::array<double, most_samples> samples{};
    std::array<double, most_samples> sorted{};  ///< The same, ascending.
    std::size_t measured = 0;
  };
  Kind& on(DeviceKind kind);
  static void add_sample(Kind& kind, double seconds);
  static double typical(const Kind& kind);
  const Kind& seen_on(DeviceKind kind) const;

  std::int64_t placed_ = 0;
  std::vector<Kind> kinds_;  ///< As far as one was counted.
};

class KernelHistory {
 public:
  /// The reference stays valid.
  TaskHistory& of(const Codelet* codelet, std::size_t bytes);

 private:
  std::map<std::pair<const Codelet*, int>, TaskHistory> classes_;
};

}  // namespace quadriga
