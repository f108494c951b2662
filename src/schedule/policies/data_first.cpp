// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/policies/data_first.cpp: the policy data-first: a device that has little to do gets
// the tasks that one more tile unlocks.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include <quadriga/machine.h>

#include "schedule/policies/built_in.h"

namespace quadriga {
namespace {

/// Waiting tasks that a pull looks at: a bound on its cost, however many wait.
constexpr std::size_t most_looked = 128;

/// A task that waits for a device, or was pulled and hasn't ended.
struct Known {
  std::vector<OperandView> operands;
  std::vector<double> kernel_seconds;  ///< By device; infinite where it can't run.
  double least_seconds = 0;            ///< On the quickest.
  int priority = 0;
  DeviceId device = no_device;  ///< Which has pulled it.
  std::uint64_t looked_at = 0;  ///< By the so-many-th pull.
};

/// The higher priority goes first, then the older.
using Place = std::pair<std::int64_t, std::uint64_t>;

/// What a device lacks for a waiting task.
struct Need {
  Place place;
  std::uint64_t task = 0;
  double seconds = 0;
  std::uint32_t tile = 0;  ///< The last that is missing.
  std::size_t tiles = 0;   ///< How many are.
  double bytes = 0;        ///< To be copied; of what is updated also those back.
};

/// A tile that alone keeps tasks from running.
struct Key {
  std::uint32_t tile = 0;
  double seconds = 0;  ///< Of those tasks.
  double bytes = 0;
};

/// Tasks wait until a device has little to do. It gets those that need nothing new; else those
/// that need one tile, the same, which lets most work run for its bytes; else the one that needs
/// fewest bytes. They stand in its plan in that order, by which tiles are fetched and leave. Tasks
/// of higher priority are looked at first, and go first among those that a tile unlocks.
///
/// Source:  Gonthier, Marchal, Thibault, Memory-aware scheduling of tasks sharing data on multiple
///          GPUs with dynamic runtime systems, IPDPS 2022 (DARTS); priorities and bytes are added.
class DataFirst final : public Policy {
 public:
  explicit DataFirst(const Machine& machine)
      : able_(machine.devices.size()), coming_(machine.devices.size()) {}

  PolicyTraits traits() const override { return {.pulls = true}; }

  void waiting(const TaskNews& news) override {
    forget(news.task.id);
    Known& task = tasks_[news.task.id];
    task.operands.assign(news.task.operands.begin(), news.task.operands.end());
    task.kernel_seconds.assign(news.kernel_seconds.begin(), news.kernel_seconds.end());
    task.least_seconds = std::ranges::min(news.kernel_seconds);
    task.priority = news.task.priority;
    wait(news.task.id, task);
  }

  void placed(std::uint64_t id, DeviceId device) override { take(id, device); }
  void ended(std::uint64_t id) override { forget(id); }

  void pull(const PullQuestion& question, std::vector<std::uint64_t>& tasks) override {
    look(question);
    std::ranges::stable_sort(needs_, {}, &Need::place);
    const Key key = best_key();
    const auto least = std::ranges::min_element(needs_, {}, &Need::bytes);
    if (least == needs_.end()) return;
    const std::size_t share = waiting_.size() / devices() + 1;
    for (const Need& need : needs_) {
      if (tasks.size() == share) break;
      const bool is_next = least->tiles == 0  ? need.tiles == 0
                           : key.seconds >= 0 ? need.tiles == 1 && need.tile == key.tile
                                              : need.task == least->task;
      if (is_next) tasks.push_back(need.task);
    }
    for (const std::uint64_t id : tasks) take(id, question.device);
  }

  /// Where it ends earliest: asked if a task can't wait to be pulled.
  std::size_t place(const PlaceQuestion& question) override {
    const auto end = [](const PlaceCandidate& c) {
      return std::max(c.queued_seconds, c.fetch_seconds) + c.kernel_seconds;
    };
    const auto best = std::ranges::min_element(question.candidates, {}, end);
    return static_cast<std::size_t>(best - question.candidates.begin());
  }
  std::size_t victim(const StealQuestion& question) override {
    return most_queued(question.queued);
  }
  std::size_t choose(std::span<const StealCandidate> candidates) override {
    return greatest_gain(candidates);
  }

 private:
  static Place place_of(std::uint64_t id, const Known& task) {
    return {-static_cast<std::int64_t>(task.priority), id};
  }

  void wait(std::uint64_t id, const Known& task) {
    waiting_.insert(place_of(id, task));
    waiting_seconds_ += task.least_seconds;
    for (std::size_t device = 0; device < able_.size(); ++device)
      able_[device] += std::isfinite(task.kernel_seconds[device]);
    for (const OperandView& operand : task.operands) users_[operand.tile].insert(id);
  }

  void stop_waiting(std::uint64_t id, const Known& task) {
    waiting_.erase(place_of(id, task));
    waiting_seconds_ = waiting_.empty() ? 0 : waiting_seconds_ - task.least_seconds;
    for (std::size_t device = 0; device < able_.size(); ++device)
      able_[device] -= std::isfinite(task.kernel_seconds[device]);
    for (const OperandView& operand : task.operands) {
      const auto users = users_.find(operand.tile);
      if (users == users_.end()) continue;
      users->second.erase(id);
      if (users->second.empty()) users_.erase(users);
    }
  }

  /// The device has what the task needs, as soon as it needs it.
  void take(std::uint64_t id, DeviceId device) {
    Known& task = tasks_.at(id);
    stop_waiting(id, task);
    task.device = device;
    for (const OperandView& operand : task.operands) ++coming_[device][operand.tile];
  }

  void forget(std::uint64_t id) {
    const auto found = tasks_.find(id);
    if (found == tasks_.end()) return;
    const Known& task = found->second;
    if (task.device == no_device) {
      stop_waiting(id, task);
    } else {
      auto& coming = coming_[task.device];
      for (const OperandView& operand : task.operands)
        if (--coming[operand.tile] == 0) coming.erase(operand.tile);
    }
    tasks_.erase(found);
  }

  /// How many can run some of what waits; at least 1.
  std::size_t devices() const {
    const auto count = std::ranges::count_if(able_, [](std::size_t tasks) { return tasks > 0; });
    return static_cast<std::size_t>(std::max<std::ptrdiff_t>(count, 1));
  }

  /// Whether the others would have run all that waits before this device has run the task.
  bool is_too_slow(const Known& task, DeviceId device) const {
    const double others = std::max(static_cast<double>(devices()) - 1, 1.0);
    return task.kernel_seconds[device] > task.least_seconds + waiting_seconds_ / others;
  }

  /// Fills needs_: first with tasks that share tiles with those that the device has pulled, then
  /// with the oldest.
  void look(const PullQuestion& question) {
    needs_.clear();
    looked_ = 0;
    ++pulls_;
    for (const auto& [tile, count] : coming_[question.device]) {
      const auto users = users_.find(tile);
      if (users == users_.end()) continue;
      for (const std::uint64_t id : users->second)
        if (!look_at(question, id)) break;
    }
    for (const auto& [urgency, id] : waiting_)
      if (!look_at(question, id)) return;
  }

  /// False if enough were looked at.
  bool look_at(const PullQuestion& question, std::uint64_t id) {
    if (looked_ == most_looked) return false;
    Known& task = tasks_.at(id);
    if (std::exchange(task.looked_at, pulls_) == pulls_) return true;
    ++looked_;
    if (is_too_slow(task, question.device)) return true;
    Need need{.place = place_of(id, task), .task = id, .seconds = task.least_seconds};
    for (const OperandView& operand : task.operands) {
      if (operand.access == Access::write || coming_[question.device].contains(operand.tile) ||
          question.has(operand.tile))
        continue;
      ++need.tiles;
      need.tile = operand.tile;
      const double ways = operand.access == Access::read ? 1 : 2;
      need.bytes += ways * static_cast<double>(operand.bytes);
    }
    needs_.push_back(need);
    return true;
  }

  /// The tile that unlocks most seconds a byte, of equal ones the first task's; less than 0 seconds
  /// if none does alone.
  Key best_key() const {
    std::map<std::uint32_t, Key> keys;
    for (const Need& need : needs_) {
      if (need.tiles != 1) continue;
      Key& key = keys[need.tile];
      key = {need.tile, key.seconds + need.seconds, need.bytes};
    }
    Key best{.seconds = -1, .bytes = 1};
    for (const Need& need : needs_) {
      if (need.tiles != 1) continue;
      const Key& key = keys[need.tile];
      if (key.seconds * best.bytes > best.seconds * key.bytes) best = key;
    }
    return best;
  }

  std::unordered_map<std::uint64_t, Known> tasks_;
  std::set<Place> waiting_;
  double waiting_seconds_ = 0;  ///< Of those, on the quickest device for each.
  std::unordered_map<std::uint32_t, std::set<std::uint64_t>> users_;  ///< Those that wait, by tile.
  std::vector<std::size_t> able_;  ///< By device: how many of those that wait it can run.
  /// By device and tile: how many tasks that it has pulled, and that haven't ended, need it.
  std::vector<std::map<std::uint32_t, std::size_t>> coming_;
  // Of a pull.
  std::vector<Need> needs_;
  std::uint64_t pulls_ = 0;  ///< Counts them.
  std::size_t looked_ = 0;   ///< How many tasks this one has looked at.
};

}  // namespace

std::unique_ptr<Policy> make_data_first(const PolicyContext& context) {
  return std::make_unique<DataFirst>(context.machine);
}

}  // namespace quadriga
