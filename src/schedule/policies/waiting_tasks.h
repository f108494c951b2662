// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/policies/waiting_tasks.h: tasks that wait until a device pulls them, by urgency and
// by tile, and the tiles that come to each device with what it has pulled.
//
// Invariants
//   1. A task is known from waiting() to ended(); it waits until it has a device.
//   2. Lists of a tile's users keep what has left until as many have left as remain: adding and
//      removing cost a constant, however many wait. Who reads a list checks is_waiting().
#pragma once

#include <quadriga/policy.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory_resource>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace quadriga {

/// The higher priority goes first, then the older: minus the priority, and the task's number.
using Urgency = std::pair<std::int64_t, std::uint64_t>;

struct WaitingTask;
using ByPlace = std::pmr::map<Urgency, WaitingTask*>;

/// A task that waits for a device, or has one and hasn't ended.
struct WaitingTask {
  DeviceId device = no_device;  ///< Which has got it.
  std::uint64_t times = 0;      ///< So often has the memory of this task been used.
  Urgency place;
  ByPlace::iterator entry;  ///< While it waits.
  std::vector<OperandView> operands;
  std::vector<double> kernel_seconds;  ///< By device; infinite where it can't run.
  double least_seconds = 0;            ///< On the quickest.
  std::uint64_t looked_at = 0;         ///< By the so-many-th look.
};

/// A task as others keep it, who aren't told when it leaves.
struct TaskReference {
  WaitingTask* task = nullptr;
  std::uint64_t times = 0;

  bool is_waiting() const { return task->times == times && task->device == no_device; }
};

/// Tiles counted by their users, and which have some.
class UsedTiles {
 public:
  void add(std::uint32_t tile);
  void remove(std::uint32_t tile) { live_ -= --counts_[tile] == 0; }
  bool contains(std::uint32_t tile) const { return tile < counts_.size() && counts_[tile] > 0; }
  /// Those with users, by number.
  std::span<const std::uint32_t> tiles();

 private:
  std::vector<std::uint32_t> counts_;  ///< By tile.
  std::vector<std::uint32_t> listed_;  ///< Those with users, and some that had.
  std::size_t live_ = 0;               ///< How many have users.
};

class WaitingTasks {
 public:
  explicit WaitingTasks(std::size_t devices) : able_(devices), coming_(devices) {}

  TaskReference add(const TaskNews& news);
  WaitingTask& at(std::uint64_t id) { return *index_.at(id); }
  /// The device gets a task that waits.
  void take(WaitingTask& task, DeviceId device);
  /// Nothing if it isn't known.
  void forget(std::uint64_t id);

  /// How many have ever come to wait.
  std::uint64_t added() const { return added_; }
  std::size_t count() const { return by_place_.size(); }
  const ByPlace& by_place() const { return by_place_; }
  /// Begins to count whom a look has met.
  void begin_look() { ++looks_; }
  bool is_first_look(WaitingTask& task) const {
    return std::exchange(task.looked_at, looks_) != looks_;
  }
  /// In the order in which they came, with some that wait no more.
  std::span<const TaskReference> users(std::uint32_t tile) const;
  UsedTiles& coming(DeviceId device) { return coming_[device]; }
  const UsedTiles& coming(DeviceId device) const { return coming_[device]; }
  /// How many devices can run some of what waits; at least 1.
  std::size_t devices() const;
  /// Of all that wait, on the quickest device for each.
  double seconds() const { return seconds_; }

 private:
  /// Those that wait and read or write a tile.
  struct Users {
    std::vector<TaskReference> tasks;
    std::size_t left = 0;  ///< How many of them wait no more.
  };

  WaitingTask& fresh();
  void stop_waiting(const WaitingTask& task);

  std::pmr::unsynchronized_pool_resource nodes_;  ///< Of what follows.
  std::deque<WaitingTask> memory_;
  std::vector<WaitingTask*> free_;
  std::pmr::unordered_map<std::uint64_t, WaitingTask*> index_{&nodes_};  ///< By number.
  ByPlace by_place_{&nodes_};                                            ///< Those that wait.
  std::vector<Users> users_;                                             ///< By tile.
  double seconds_ = 0;
  std::uint64_t added_ = 0;
  std::uint64_t looks_ = 0;
  std::vector<std::size_t> able_;  ///< By device: how many of those that wait it can run.
  std::vector<UsedTiles> coming_;  ///< By device: of tasks that it has got and that haven't ended.
};

}  // namespace quadriga
