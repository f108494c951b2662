// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/random_revocations.h: random tasks and gangs of groups that are cancelled while
// they are queued, and what went wrong.
#pragma once

#include <quadriga/engine.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "engine/engine_access.h"

namespace quadriga {

/// Tasks read, update and write tiles on three devices; some start together, each on a tile of its
/// own. A tile's content is the number of the task that wrote it last.
class RandomRevocations {
 public:
  explicit RandomRevocations(std::uint64_t seed) : random_(seed) {
    EngineOptions options;
    options.devices = "emulated:3,memory=1MiB";
    engine_ = std::make_unique<Engine>(std::move(options));
    for (double& home : homes_) {
      home = 0;
      tiles_.push_back(engine_->data(&home, 1, 1, 1, DType::float64));
    }
    for (int i = 0; i < 3; ++i) groups_.emplace_back();
  }

  /// What went wrong first; empty: nothing.
  std::string run() {
    constexpr int steps = 400;
    for (int i = 0; i < steps; ++i) {
      if (random_.below(8) == 0)
        submit_gang();
      else
        submit_task();
      if (random_.below(20) == 0) cancel_group();
      if (random_.below(100) == 0) cancel_all();
      if (random_.below(30) == 0) ended_well(tasks_[random_.below(tasks_.size())]);
    }
    std::string wrong = check_ends();
    if (wrong.empty()) wrong = check_gangs();
    if (wrong.empty()) wrong = check_engine();
    return wrong;
  }

 private:
  struct Use {
    std::size_t tile = 0;
    Access access = Access::read;
    double before = 0;  ///< What it shall find.
  };
  struct Made {
    Future future;
    std::size_t group = none;
    std::vector<Use> uses;
    Codelet codelet;
    bool is_cancelled = false;  ///< It may have been.
    std::atomic<bool> ran{false};
    std::atomic<bool> met_other{false};  ///< It ran on something else than what it shall find.
  };
  struct Together {
    std::shared_ptr<Gang> gang;
    std::vector<Made*> members;
    std::atomic<std::uint32_t> came{0};
  };
  static constexpr std::size_t none = SIZE_MAX;

  Made& make(std::string name) {
    Made& made = tasks_.emplace_back();
    made.codelet.name = std::move(name);
    made.group = random_.below(4) == 0 ? none : groups_.size() - 1 - random_.below(3);
    return made;
  }
  TaskGroup* group_of(const Made& made) {
    return made.group == none ? nullptr : &groups_[made.group];
  }
  bool is_cancelled(const Made& made) const {
    return made.is_cancelled || (made.group != none && groups_[made.group].cancelled);
  }

  void submit_task() {
    Made& made = make("task");
    const auto number = static_cast<double>(tasks_.size());
    constexpr std::array modes{Access::read, Access::update, Access::write};
    std::vector<Operand> operands;
    for (std::size_t left = 1 + random_.below(2); left > 0; --left) {
      const std::size_t tile = random_.below(tiles_.size());
      if (std::ranges::count(made.uses, tile, &Use::tile) > 0) continue;
      const Access access = modes[random_.below(modes.size())];
      made.uses.push_back({tile, access, newest_[tile]});
      if (writes(access)) newest_[tile] = number;
      made.codelet.access.push_back(access);
      operands.push_back({tiles_[tile], access});
    }
    made.codelet.cpu = [&made, number, pause = random_.below(50)](const Arguments& arguments) {
      for (std::uint64_t i = 0; i < pause; ++i) std::this_thread::yield();
      for (std::size_t i = 0; i < made.uses.size(); ++i) {
        double& content = *arguments.operands[i].as<double>();
        if (reads(made.uses[i].access) && content != made.uses[i].before) made.met_other = true;
        if (writes(made.uses[i].access)) content = number;
      }
      made.ran = true;
    };
    SubmitOptions options;
    if (random_.below(2) == 0) options.device = static_cast<DeviceId>(random_.below(3));
    made.future =
        EngineAccess::submit(*engine_, made.codelet, operands, {}, options, group_of(made));
  }

  void submit_gang() {
    Together& together = gangs_.emplace_back();
    const auto size = static_cast<std::uint32_t>(2 + random_.below(2));
    together.gang = std::make_shared<Gang>(size);
    std::vector<GangTask> tasks;
    for (std::uint32_t i = 0; i < size; ++i) {
      Made& made = make("member");
      if (i > 0) made.group = together.members.front()->group;
      together.members.push_back(&made);
      made.codelet.access = {Access::update};
      made.codelet.cpu = [&made, &together](const Arguments&) {
        made.ran = true;
        together.came.fetch_add(1);
        while (together.came < together.members.size() && !together.gang->broken)
          std::this_thread::yield();
      };
      double& home = own_homes_.emplace_back(0);
      const Data own = engine_->data(&home, 1, 1, 1, DType::float64);
      tasks.push_back({&made.codelet, {{own, Access::update}}, static_cast<DeviceId>(i)});
    }
    Made& first = *together.members.front();
    const std::vector<Future> futures =
        EngineAccess::submit_together(*engine_, tasks, together.gang, group_of(first));
    for (std::uint32_t i = 0; i < size; ++i) together.members[i]->future = futures[i];
  }

  /// As EngineAccess::cancel() begins.
  void cancel_group() {
    groups_[groups_.size() - 1 - random_.below(3)].cancelled = true;
    groups_.emplace_back();
  }
  void cancel_all() {
    engine_->cancel();
    for (Made& made : tasks_) made.is_cancelled = true;
  }

  bool ended_well(const Made& made) {
    try {
      engine_->wait(made.future);
    } catch (const Error&) {
      return false;
    }
    return true;
  }
  std::string check_ends() {
    std::vector<bool> may_lack(tiles_.size(), false);
    for (Made& made : tasks_) {
      bool may_fail = is_cancelled(made);
      for (const Use& use : made.uses) may_fail |= reads(use.access) && may_lack[use.tile];
      for (const Use& use : made.uses)
        if (writes(use.access)) may_lack[use.tile] = may_fail;
      const bool is_good = ended_well(made);
      if (made.met_other) return "a task ran on what wasn't written";
      if (is_good != made.ran) return "a task ended well that didn't run, or ran and failed";
      if (!is_good && !may_fail) return "a task failed that nothing was cancelled of";
    }
    return {};
  }
  std::string check_gangs() {
    for (const Together& each : gangs_) {
      const auto ran =
          std::ranges::count_if(each.members, [](Made* made) { return made->ran.load(); });
      if (ran > 0 && static_cast<std::size_t>(ran) < each.members.size())
        return "a gang ran in part";
    }
    return {};
  }
  /// Whether it is as good as new.
  std::string check_engine() {
    Codelet writes;
    writes.name = "writes";
    writes.access = {Access::write};
    writes.cpu = [](const Arguments& arguments) { *arguments.operands[0].as<double>() = -1; };
    for (const Data& each : tiles_) engine_->submit(writes, {{each, Access::write}});
    for (std::size_t i = 0; i < tiles_.size(); ++i) {
      engine_->wait(tiles_[i]);
      if (homes_[i] != -1) return "a tile didn't come home";
    }
    return {};
  }

  Random random_;
  std::array<double, 12> homes_{};
  std::array<double, 12> newest_{};  ///< By tile: what its last task makes of it.
  std::deque<double> own_homes_;     ///< Of gangs' tiles.
  std::deque<TaskGroup> groups_;     ///< The last three get tasks.
  std::deque<Made> tasks_;
  std::deque<Together> gangs_;
  std::vector<Data> tiles_;
  std::unique_ptr<Engine> engine_;
};

inline std::string run_random_revocations(std::uint64_t seed) {
  return RandomRevocations(seed).run();
}

}  // namespace quadriga
