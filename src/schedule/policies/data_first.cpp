// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/policies/data_first.cpp: the policy data-first: a device that has little to do gets
// the tasks that one more tile unlocks.
#include <algorithm>
#include <utility>
#include <vector>

#include <quadriga/machine.h>

#include "schedule/policies/built_in.h"
#include "schedule/policies/device_needs.h"

namespace quadriga {
namespace {

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
      : tasks_(machine.devices.size()),
        needs_(machine.devices.size(), DeviceNeeds(tasks_)),
        found_none_(machine.devices.size()) {}

  PolicyTraits traits() const override { return {.pulls = true}; }

  void waiting(const TaskNews& news) override {
    const TaskReference task = tasks_.add(news);
    for (DeviceNeeds& needs : needs_) needs.came(task);
  }
  void placed(std::uint64_t id, DeviceId device) override {
    WaitingTask& task = tasks_.at(id);
    tasks_.take(task, device);
    needs_[device].brings(task.operands);
  }
  void ended(std::uint64_t id) override { tasks_.forget(id); }

  void pull(const PullQuestion& question, std::vector<std::uint64_t>& tasks) override {
    if (found_none_[question.device] == waiting_now()) return;
    DeviceNeeds& needs = needs_[question.device];
    choose_among(needs.update(question));
    const auto is_right = [&](const LackingTask* need) { return needs.is_right(*need, question); };
    if (!std::ranges::all_of(chosen_, is_right)) choose_among(needs.look(question));
    // Beyond those that were seen may be some that aren't too slow here.
    if (chosen_.empty() && needs.has_seen_all()) found_none_[question.device] = waiting_now();
    for (const LackingTask* need : chosen_) {
      tasks.push_back(need->place.second);
      tasks_.take(*need->task.task, question.device);
    }
    // If there are several, they lack the same tile or none.
    if (!chosen_.empty() && chosen_.front()->tiles == 1) needs.brings(chosen_.front()->tile);
    if (!chosen_.empty() && chosen_.front()->tiles > 1)
      needs.brings(chosen_.front()->task.task->operands);
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
  /// What a device for which all that it sees is too slow waits for, as others only get on with the
  /// rest: that more comes to wait, or another device can run no more of it.
  struct Waiting {
    std::uint64_t added = 0;
    std::size_t devices = 0;
    bool operator==(const Waiting&) const = default;
  };
  Waiting waiting_now() const { return {tasks_.added(), tasks_.devices()}; }

  /// Fills chosen_, in the order in which they go: what lacks nothing; else what lacks only the
  /// best tile; else what lacks fewest bytes.
  void choose_among(std::span<const LackingTask> needs) {
    chosen_.clear();
    one_tile_.clear();
    // A device leaves what the others would have run, beside all else that waits, before it has.
    const double others = std::max(static_cast<double>(tasks_.devices()) - 1, 1.0);
    const double most_behind = tasks_.seconds() / others;
    const std::size_t share = tasks_.count() / tasks_.devices() + 1;
    const LackingTask* least = nullptr;
    for (const LackingTask& need : needs) {
      if (need.seconds > need.least_seconds + most_behind) continue;
      if (need.tiles == 0) chosen_.push_back(&need);
      if (chosen_.size() == share) return;
      if (need.tiles == 1) one_tile_.push_back(&need);
      if (!least || need.bytes < least->bytes) least = &need;
    }
    if (!chosen_.empty() || !least) return;
    const Key best = best_key();
    if (best.seconds < 0) chosen_.push_back(least);
    if (best.seconds < 0) return;
    for (const LackingTask* need : one_tile_)
      if (need->tile == best.tile && chosen_.size() < share) chosen_.push_back(need);
  }

  /// The tile that unlocks most seconds a byte, of equal ones the first task's; less than 0 seconds
  /// if none does alone.
  Key best_key() {
    opened_.clear();
    for (const LackingTask* need : one_tile_) {
      if (need->tile >= keys_.size()) keys_.resize(std::size_t{need->tile} + 1);
      Key& key = keys_[need->tile];
      if (key.bytes == 0) opened_.push_back(need->tile);
      key = {need->tile, key.seconds + need->least_seconds, need->bytes};
    }
    Key best{.seconds = -1, .bytes = 1};
    for (const std::uint32_t tile : opened_) {
      const Key key = std::exchange(keys_[tile], {});
      if (key.seconds * best.bytes > best.seconds * key.bytes) best = key;
    }
    return best;
  }

  WaitingTasks tasks_;
  std::vector<DeviceNeeds> needs_;   ///< By device.
  std::vector<Waiting> found_none_;  ///< By device: when it last found nothing.
  // Of a pull.
  std::vector<const LackingTask*> one_tile_, chosen_;  ///< Those that lack one; that go.
  std::vector<Key> keys_;                              ///< By tile; between pulls without bytes.
  std::vector<std::uint32_t> opened_;                  ///< Tiles of those that have some.
};

}  // namespace

std::unique_ptr<Policy> make_data_first(const PolicyContext& context) {
  return std::make_unique<DataFirst>(context.machine);
}

}  // namespace quadriga
