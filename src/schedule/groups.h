// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/groups.h: the groups whose tasks a scheduler has, so that it sees which of them were
// cancelled. Any thread cancels a group; the scheduler looks before each step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "graph/group.h"

namespace quadriga {

class Groups {
 public:
  /// A task of the group was submitted; null: it has none.
  void entered(TaskGroup* group) {
    if (!group) return;
    ++find(group).tasks;
  }
  /// A task of the group has left the schedule. Forgets the group with its last one.
  void left(TaskGroup* group) {
    if (!group) return;
    Member& member = find(group);
    if (--member.tasks > 0) return;
    member = members_.back();
    members_.pop_back();
  }
  /// One that was cancelled and isn't stopped yet; null if there is none.
  TaskGroup* next_cancelled() const noexcept {
    const auto found = std::ranges::find_if(members_, [](const Member& member) {
      return !member.group->stopped && member.group->cancelled.load(std::memory_order_acquire);
    });
    return found == members_.end() ? nullptr : found->group;
  }

 private:
  struct Member {
    TaskGroup* group = nullptr;
    std::uint64_t tasks = 0;
  };
  /// The one that was asked for last comes first: most tasks follow others of their group.
  Member& find(TaskGroup* group) {
    auto found = std::ranges::find(members_, group, &Member::group);
    if (found == members_.end()) found = members_.insert(found, {group});
    std::swap(*found, members_.front());
    return members_.front();
  }

  std::vector<Member> members_;
};

}  // namespace quadriga
