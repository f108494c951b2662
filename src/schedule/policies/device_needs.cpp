// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/policies/device_needs.cpp: looks at all that waits, or at what has changed.
#include "schedule/policies/device_needs.h"

#include <algorithm>
#include <utility>

namespace quadriga {

void DeviceNeeds::came(const TaskReference& task) {
  if (changed_ > most_changed) return;
  ++changed_;
  news_.push_back(task);
}

void DeviceNeeds::brings(std::uint32_t tile) {
  for (LackingTask& need : needs_) {
    if (need.tiles == 0 || need.tiles == unknown || !need.task.is_waiting()) continue;
    const auto is_it = [&](const OperandView& operand) { return operand.tile == tile; };
    if (need.tiles == 1 ? need.tile != tile : std::ranges::none_of(need.task.task->operands, is_it))
      continue;
    need.tiles = unknown;
    has_unknown_ = true;
  }
}

void DeviceNeeds::brings(std::span<const OperandView> operands) {
  for (const OperandView& operand : operands) brings(operand.tile);
}

LackingTask DeviceNeeds::find(const TaskReference& task, const PullQuestion& question) const {
  const WaitingTask& known = *task.task;
  LackingTask need{.place = known.place,
                   .task = task,
                   .least_seconds = known.least_seconds,
                   .seconds = known.kernel_seconds[question.device]};
  const UsedTiles& coming = tasks_.coming(question.device);
  for (const OperandView& operand : known.operands) {
    if (operand.access == Access::write || coming.contains(operand.tile) ||
        question.has(operand.tile))
      continue;
    ++need.tiles;
    need.tile = operand.tile;
    const double ways = operand.access == Access::read ? 1 : 2;
    need.bytes += ways * static_cast<double>(operand.bytes);
  }
  return need;
}

/// Those less urgent than all that were seen only if the device has some of their tiles.
void DeviceNeeds::add_news(const PullQuestion& question) {
  for (const TaskReference& task : news_) {
    if (!task.is_waiting()) continue;
    const LackingTask need = find(task, question);
    const bool is_seen = is_whole_ || needs_.empty() || need.place < needs_.back().place ||
                         need.tiles < task.task->operands.size();
    if (is_seen)
      needs_.insert(std::ranges::lower_bound(needs_, need.place, {}, &LackingTask::place), need);
  }
  news_.clear();
}

std::span<const LackingTask> DeviceNeeds::update(const PullQuestion& question) {
  const std::size_t left =
      std::erase_if(needs_, [](const LackingTask& need) { return !need.task.is_waiting(); });
  if (!is_whole_) changed_ += left;
  if (changed_ > most_changed) return look(question);
  if (std::exchange(has_unknown_, false))
    for (LackingTask& need : needs_)
      if (need.tiles == unknown) need = find(need.task, question);
  add_news(question);
  return needs_;
}

std::span<const LackingTask> DeviceNeeds::look(const PullQuestion& question) {
  needs_.clear();
  news_.clear();
  changed_ = 0;
  tasks_.begin_look();
  for (const std::uint32_t tile : tasks_.coming(question.device).tiles())
    for (const TaskReference& task : tasks_.users(tile))
      if (!look_at(task, question)) break;
  for (const auto& [place, task] : tasks_.by_place())
    if (!look_at({task, task->times}, question)) break;
  is_whole_ = needs_.size() == tasks_.count();
  std::ranges::sort(needs_, {}, &LackingTask::place);
  return needs_;
}

/// False if enough were looked at.
bool DeviceNeeds::look_at(const TaskReference& task, const PullQuestion& question) {
  if (needs_.size() == most_looked) return false;
  if (task.is_waiting() && tasks_.is_first_look(*task.task)) needs_.push_back(find(task, question));
  return true;
}

}  // namespace quadriga
