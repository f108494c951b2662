// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/policies/waiting_tasks.cpp: tasks come to wait, get a device, and end.
#include "schedule/policies/waiting_tasks.h"

#include <algorithm>
#include <cmath>

namespace quadriga {

void UsedTiles::add(std::uint32_t tile) {
  if (tile >= counts_.size()) counts_.resize(std::size_t{tile} + 1);
  if (counts_[tile]++ > 0) return;
  ++live_;
  listed_.push_back(tile);
  if (listed_.size() > 2 * live_ + 64) tiles();
}

std::span<const std::uint32_t> UsedTiles::tiles() {
  std::erase_if(listed_, [&](std::uint32_t tile) { return counts_[tile] == 0; });
  std::ranges::sort(listed_);
  listed_.erase(std::ranges::unique(listed_).begin(), listed_.end());
  return listed_;
}

WaitingTask& WaitingTasks::fresh() {
  if (free_.empty()) return memory_.emplace_back();
  WaitingTask& task = *free_.back();
  free_.pop_back();
  return task;
}

TaskReference WaitingTasks::add(const TaskNews& news) {
  forget(news.task.id);
  ++added_;
  WaitingTask& task = fresh();
  index_[news.task.id] = &task;
  task.place = {-static_cast<std::int64_t>(news.task.priority), news.task.id};
  task.operands.assign(news.task.operands.begin(), news.task.operands.end());
  task.kernel_seconds.assign(news.kernel_seconds.begin(), news.kernel_seconds.end());
  task.least_seconds = std::ranges::min(news.kernel_seconds);
  task.device = no_device;
  const TaskReference reference{&task, ++task.times};

  task.entry = by_place_.emplace_hint(by_place_.end(), task.place, &task);
  seconds_ += task.least_seconds;
  for (std::size_t device = 0; device < able_.size(); ++device)
    able_[device] += std::isfinite(task.kernel_seconds[device]);
  for (const OperandView& operand : task.operands) {
    if (operand.tile >= users_.size()) users_.resize(std::size_t{operand.tile} + 1);
    users_[operand.tile].tasks.push_back(reference);
  }
  return reference;
}

void WaitingTasks::take(WaitingTask& task, DeviceId device) {
  task.device = device;
  stop_waiting(task);
  for (const OperandView& operand : task.operands) coming_[device].add(operand.tile);
}

void WaitingTasks::stop_waiting(const WaitingTask& task) {
  by_place_.erase(task.entry);
  seconds_ = by_place_.empty() ? 0 : seconds_ - task.least_seconds;
  for (std::size_t device = 0; device < able_.size(); ++device)
    able_[device] -= std::isfinite(task.kernel_seconds[device]);
  for (const OperandView& operand : task.operands) {
    Users& users = users_[operand.tile];
    if (2 * ++users.left <= users.tasks.size()) continue;
    std::erase_if(users.tasks, [](const TaskReference& each) { return !each.is_waiting(); });
    users.left = 0;
  }
}

void WaitingTasks::forget(std::uint64_t id) {
  const auto found = index_.find(id);
  if (found == index_.end()) return;
  WaitingTask& task = *found->second;
  ++task.times;
  if (task.device == no_device)
    stop_waiting(task);
  else
    for (const OperandView& operand : task.operands) coming_[task.device].remove(operand.tile);
  free_.push_back(&task);
  index_.erase(found);
}

std::span<const TaskReference> WaitingTasks::users(std::uint32_t tile) const {
  if (tile >= users_.size()) return {};
  return users_[tile].tasks;
}

std::size_t WaitingTasks::devices() const {
  const auto count = std::ranges::count_if(able_, [](std::size_t tasks) { return tasks > 0; });
  return static_cast<std::size_t>(std::max<std::ptrdiff_t>(count, 1));
}

}  // namespace quadriga
