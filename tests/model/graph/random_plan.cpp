// SPDX-License-Identifier: BSD-3-Clause
// tests/model/graph/random_plan.cpp: the events, and the model that looks at every task.
#include "model/graph/random_plan.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include "base/random.h"
#include "graph/graph.h"
#include "schedule/lookahead.h"

namespace quadriga {
namespace {

constexpr DeviceId devices = 3;
constexpr TileId tiles = 7;

/// A memory with room for all, in which each tile takes one byte.
struct Space {
  std::set<TileId> here;
  bool has(TileId tile) const { return here.contains(tile); }
  std::size_t bytes(TileId) const { return 1; }
  std::size_t free_bytes() const { return SIZE_MAX; }
  std::span<const Resident> residents() const { return {}; }
};

class RandomPlan {
 public:
  RandomPlan(std::uint64_t seed, bool many)
      : random_(seed),
        most_(many ? 1500 : 150),
        used_(many ? 1 : devices),
        data_(tiles),
        spaces_(devices) {
    for (TileId tile = 0; tile < tiles; ++tile) data_[tile].tile = tile;
    for (DeviceId device = 0; device < devices; ++device) lookaheads_.emplace_back(plan_, device);
    told_.assign(tiles, std::vector<std::uint64_t>(devices, UINT64_MAX));
  }

  std::string run() {
    const int steps = most_ > 1000 ? 8000 : 1200;
    for (int step = 0; step < steps; ++step) {
      act();
      if (most_ > 1000 ? step % 400 != 0 : step % 5 != 0) continue;
      std::string wrong = compare();
      if (!wrong.empty()) return fmt::format("step {}: {}", step, wrong);
    }
    return {};
  }

 private:
  void act() {
    const auto dice = random_.below(20);
    if (dice < 9 && live_.size() < most_) return submit();
    if (dice == 19) return move_tile();
    if (live_.empty()) return;
    PlannedTask& planned = *live_[random_.below(live_.size())];
    if (planned.is_among(issued_states)) return end(planned);
    if (planned.device == no_device)
      plan_.place(planned, some_device());
    else if (dice < 12)
      steal(planned);
    else if (dice < 16)
      ready(planned);
    else
      issue(planned);
  }

  void submit() {
    Task& task = tasks_.emplace_back();
    task.id = tasks_.size();
    task.priority = random_.chance(0.3) ? 0 : static_cast<int>(random_.below(50));
    task.operands = task.inline_slots;
    task.operand_count = static_cast<std::uint16_t>(1 + random_.below(3));
    const auto first = static_cast<TileId>(random_.below(tiles));
    for (std::uint16_t i = 0; i < task.operand_count; ++i) {
      constexpr Access modes[] = {Access::read, Access::read, Access::update, Access::write};
      OperandSlot& slot = task.operands[i];
      slot.datum = &data_[(first + i) % tiles];
      slot.access = modes[random_.below(4)];
      slot.version = slot.datum->versions;
      if (writes(slot.access)) ++slot.datum->versions;
      slot.behind_host = random_.chance(0.1);
      if (slot.behind_host) task.behind_hold = true;
    }
    const Plan::Uses uses = random_.chance(0.5) ? Plan::Uses::planned : Plan::Uses::later;
    live_.push_back(&plan_.add(task, uses));
    if (random_.chance(0.6))
      plan_.place(*live_.back(), some_device());
    else
      plan_.plan_uses(*live_.back());
  }
  void steal(PlannedTask& planned) {
    plan_.unplace(planned);
    if (random_.chance(0.8)) plan_.place(planned, some_device());
  }
  void ready(PlannedTask& planned) {
    if (planned.state() != TaskState::ready) plan_.make_ready(planned);
  }
  /// Its tiles are in the memory then; others may have to leave theirs, as what is overwritten.
  void issue(PlannedTask& planned) {
    ready(planned);
    for (std::size_t i = 0; i < planned.accesses.size(); ++i)
      spaces_[planned.device].here.insert(planned.accesses[i].datum->tile);
    plan_.issue(planned);
    for (const PlannedAccess& access : planned.accesses)
      for (DeviceId device = 0; device < devices; ++device)
        if (device != planned.device && random_.chance(0.3)) depart(access.datum->tile, device);
  }
  void end(PlannedTask& planned) {
    std::erase(live_, &planned);
    plan_.end(planned);
  }
  void move_tile() {
    const auto tile = static_cast<TileId>(random_.below(tiles));
    const DeviceId device = some_device();
    if (random_.chance(0.7))
      depart(tile, device);
    else
      spaces_[device].here.insert(tile);
  }
  void depart(TileId tile, DeviceId device) {
    if (spaces_[device].here.erase(tile) > 0) plan_.uses().departed(tile, device);
  }
  DeviceId some_device() { return static_cast<DeviceId>(random_.below(used_)); }

  /// Of a device, in the order of the plan.
  std::vector<PlannedTask*> planned_on(DeviceId device, bool only_ready) const {
    std::vector<PlannedTask*> result;
    for (PlannedTask* const planned : live_)
      if (planned->device == device && !planned->is_among(issued_states) &&
          (planned->state() == TaskState::ready || !only_ready))
        result.push_back(planned);
    std::ranges::sort(result, {}, &PlannedTask::position);
    return result;
  }
  std::uint64_t next_use_after(TileId tile, DeviceId device, Position position) const {
    std::uint64_t next = UINT64_MAX;
    for (const PlannedTask* const planned : live_) {
      const bool counts = !planned->is_among(issued_states) && planned->position > position &&
                          (planned->device == device || planned->device == no_device);
      const auto slots = planned->task->slots();
      if (counts && std::ranges::any_of(
                        slots, [&](const OperandSlot& slot) { return slot.datum->tile == tile; }))
        next = std::min(next, planned->position);
    }
    return next;
  }
  std::vector<TileId> fetches(DeviceId device) const {
    std::vector<TileId> result;
    std::set<TileId> here = spaces_[device].here;
    std::size_t looked = 0;
    for (const PlannedTask* planned : planned_on(device, false)) {
      if (++looked > Lookahead::most_tasks || result.size() >= Lookahead::most_fetches) break;
      for (std::size_t i = 0; i < planned->accesses.size(); ++i)
        if (here.insert(planned->accesses[i].datum->tile).second &&
            plan_.uses().reads_present(planned->accesses[i]))
          result.push_back(planned->accesses[i].datum->tile);
    }
    return result;
  }

  std::string compare() {
    try {
      plan_.validate();
      if (std::string wrong = hear_of_later_uses(); !wrong.empty()) return wrong;
      for (DeviceId device = 0; device < devices; ++device)
        if (std::string wrong = compare(device); !wrong.empty())
          return fmt::format("device {}: {}", device, wrong);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }
  /// A use that is later than when this was called last is told; sooner ones needn't be.
  std::string hear_of_later_uses() {
    std::set<std::pair<TileId, DeviceId>> later;
    bool is_twice = false;
    plan_.uses().take_later(
        [&](TileId tile, DeviceId device) { is_twice |= !later.emplace(tile, device).second; });
    if (is_twice) return "a tile that is used later is told twice";
    for (TileId tile = 0; tile < tiles; ++tile)
      for (DeviceId device = 0; device < devices; ++device) {
        const std::uint64_t next = next_use_after(tile, device, 0);
        const bool is_told = later.contains({tile, device}) || later.contains({tile, no_device});
        if (next > std::exchange(told_[tile][device], next) && !is_told)
          return fmt::format("device {} isn't told that tile {} is used later", device, tile);
      }
    return {};
  }
  std::string compare(DeviceId device) {
    if (!std::ranges::equal(plan_.on(device).planned(), planned_on(device, false)))
      return "other planned tasks, or in another order";
    if (!std::ranges::equal(plan_.on(device).ready(), planned_on(device, true)))
      return "other ready tasks, or in another order";
    for (const PlannedTask* const planned : plan_.on(device).planned())
      for (const PlannedAccess& access : planned->accesses)
        if (plan_.uses().next_use_behind(access, device) !=
            next_use_after(access.datum->tile, device, access.position))
          return fmt::format("another use of tile {} behind one", access.datum->tile);
    for (TileId tile = 0; tile < tiles; ++tile) {
      const Position position =
          random_.below(tasks_.size() + 1) | (std::uint64_t{INT32_MAX - random_.below(50)} << 32);
      for (const Position after : {Position{0}, position})
        if (plan_.uses().next_use_after(tile, device, after) != next_use_after(tile, device, after))
          return fmt::format("another next use of tile {} after {}", tile, after);
      if (plan_.uses().next_use(tile, device) != next_use_after(tile, device, 0))
        return fmt::format("another next use of tile {}", tile);
      const bool is_user = plan_.uses().possible_users(tile) >> device & 1;
      if (is_user != (next_use_after(tile, device, 0) != UINT64_MAX))
        return fmt::format("another answer on whether a device may use tile {}", tile);
    }
    std::deque<Fetch> found;
    const bool has_news = lookaheads_[device].has_news();
    lookaheads_[device].follow(spaces_[device], found);
    lookaheads_[device].validate(spaces_[device]);
    if (!std::ranges::equal(found, fetches(device), {}, &Fetch::tile)) return "other fetches";
    if (!has_news && !found.empty()) return "fetches, though there was no news";
    return {};
  }

  Random random_;
  std::size_t most_;
  std::size_t used_;  ///< Of the devices.
  std::deque<Datum> data_;
  std::deque<Task> tasks_;
  Plan plan_{devices};
  std::deque<Lookahead> lookaheads_;
  std::vector<Space> spaces_;
  std::vector<PlannedTask*> live_;
  std::vector<std::vector<std::uint64_t>> told_;  ///< Next uses, by tile and device.
};

}  // namespace

std::string run_random_plan(std::uint64_t seed, bool many) { return RandomPlan(seed, many).run(); }

}  // namespace quadriga
