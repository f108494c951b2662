// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/kernel_history.cpp: measured times, guesses, and counts of what is under way.
#include "schedule/kernel_history.h"

#include <algorithm>
#include <bit>

#include "device/kinds.h"

namespace quadriga {

TaskHistory::Kind& TaskHistory::on(DeviceKind kind) {
  const auto number = static_cast<std::size_t>(kind);
  if (number >= kinds_.size()) [[unlikely]]
    kinds_.resize(number + 1);
  return kinds_[number];
}

const TaskHistory::Kind& TaskHistory::seen_on(DeviceKind kind) const {
  static const Kind nothing;
  const auto number = static_cast<std::size_t>(kind);
  return number < kinds_.size() ? kinds_[number] : nothing;
}

double TaskHistory::seconds(DeviceKind kind) const {
  const Kind& own = seen_on(kind);
  if (own.ended > 0) return own.seconds;
  const auto known = std::ranges::find_if(kinds_, [](const Kind& each) { return each.ended > 0; });
  return known == kinds_.end() ? own.seconds : known->seconds;
}

Experience TaskHistory::experience(DeviceKind kind) const {
  const Kind& own = seen_on(kind);
  Experience experience{.placed = placed_, .under_way = own.under_way, .ended = own.ended};
  for (const Kind& each : kinds_) experience.beside += each.under_way;
  experience.beside -= own.under_way;
  return experience;
}

/// In the place of the oldest, once there are enough: one sample moves between two places.
void TaskHistory::add_sample(Kind& kind, double seconds) {
  double& newest = kind.samples[kind.measured % most_samples];
  std::size_t at = std::min(kind.measured, most_samples);
  if (at == most_samples) {
    const auto oldest = std::lower_bound(kind.sorted.begin(), kind.sorted.end(), newest);
    at = static_cast<std::size_t>(oldest - kind.sorted.begin());
  }
  const std::size_t last = std::min(kind.measured, most_samples - 1);
  for (; at > 0 && kind.sorted[at - 1] > seconds; --at) kind.sorted[at] = kind.sorted[at - 1];
  for (; at < last && kind.sorted[at + 1] < seconds; ++at) kind.sorted[at] = kind.sorted[at + 1];
  kind.sorted[at] = newest = seconds;
  ++kind.measured;
}

double TaskHistory::typical(const Kind& kind) {
  constexpr double most = 4;  // medians
  const std::size_t size = std::min(kind.measured, most_samples);
  const double median = kind.sorted[(size - 1) / 2];
  if (size <= 2) return median;
  double sum = 0;
  std::size_t count = 0;
  while (count < size && kind.sorted[count] <= most * median) sum += kind.sorted[count++];
  return sum / static_cast<double>(count);
}

/// What took no time says nothing of others.
void TaskHistory::measured(DeviceKind kind, double seconds) {
  Kind& own = on(kind);
  ++own.ended;
  if (own.ended == 1) own.seconds = 0;  // no guess any more
  if (!(seconds > 0)) return;
  add_sample(own, seconds);
  own.seconds = typical(own);
}

void TaskHistory::guess_from(const TaskHistory& other) {
  for (const DeviceKind kind : all_kinds()) on(kind).seconds = other.seconds(kind);
}

TaskHistory& KernelHistory::of(const Codelet* codelet, std::size_t bytes) {
  const auto [entry, is_new] =
      classes_.try_emplace({codelet, static_cast<int>(std::bit_width(bytes))});
  if (!is_new) return entry->second;
  // Sizes of a codelet stand side by side in the map: that of the next smaller one, else larger.
  if (entry != classes_.begin() && std::prev(entry)->first.first == codelet)
    entry->second.guess_from(std::prev(entry)->second);
  else if (const auto next = std::next(entry);
           next != classes_.end() && next->first.first == codelet)
    entry->second.guess_from(next->second);
  return entry->second;
}

}  // namespace quadriga
