// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/lookahead.h: what to fetch ahead for a device, and which tiles leave for it. Pure.
//
// Follows the device's plan from its head and replaces as Belady's rule would at the moment of each
// miss; a fetch may then be made as soon as its victims are not needed any more before it. Nothing
// leaves that the rule would have kept, so fetching ahead costs no traffic. One exception keeps
// copies from waiting for tiles that are still in use: what no task in sight uses leaves first.
// Source: Cao, Felten, Karlin, Li, A study of integrated prefetching and caching strategies,
// SIGMETRICS 1995 (the algorithm "conservative").
#pragma once

#include <cstdint>
#include <deque>
#include <queue>
#include <span>
#include <vector>

#include "schedule/plan.h"

namespace quadriga {

/// A tile in the device's memory.
struct Resident {
  TileId tile = no_tile;
  std::size_t bytes = 0;
};

/// One tile to bring before the task at `position`; `victims` leave first.
struct Fetch {
  TileId tile = no_tile;
  Position position = 0;
  std::vector<TileId> victims;
};

class Lookahead {
 public:
  static constexpr int most_tasks = 512;
  static constexpr std::size_t most_fetches = 16;

  Lookahead(Plan& plan, DeviceId device) : plan_(plan), device_(device) {}

  /// Appends the next fetches whose content exists already, in the order of the plan.
  ///
  /// `space` tells of the device's memory: has(tile), bytes(tile) that a tile takes there,
  /// free_bytes(), residents(), and departures(), which counts the tiles that left.
  template <class Space>
  void follow(const Space& space, std::deque<Fetch>& out) {
    if (departures_ != space.departures()) forget();
    departures_ = space.departures();
    const std::size_t before = out.size();
    if (follow_with_room(space, out)) return;
    out.resize(before);
    follow_short_of_room(space, out);
  }

 private:
  struct Entry {
    std::uint64_t next_use;
    TileId tile;
    bool operator<(const Entry& other) const noexcept {
      return next_use != other.next_use ? next_use < other.next_use : tile < other.tile;
    }
  };

  /// Nothing needs to leave: next uses don't matter, and tasks whose tiles were all here needn't be
  /// looked at again. False if room is short, or soon will be.
  template <class Space>
  bool follow_with_room(const Space& space, std::deque<Fetch>& out) {
    const PlanSet& planned = plan_.on(device_).planned;
    Clear& clear = plan_.on(device_).clear;
    int looked = clear.tasks;
    if (looked >= most_tasks || planned.empty()) return true;
    begin({}, space.free_bytes());
    bool all_here = true;
    for (auto next = after(planned, clear); next != planned.end(); ++next) {
      if (++looked > most_tasks || out.size() >= most_fetches) return true;
      const PlannedTask& task = **next;
      for (std::size_t i = 0; i < task.accesses.size(); ++i) {
        const TileId tile = task.accesses[i].datum->tile;
        if (space.has(tile) || is_present(tile)) continue;
        all_here = false;
        const std::size_t bytes = space.bytes(tile);
        if (free_bytes_ < bytes) return false;
        free_bytes_ -= bytes;
        present(tile, 0);
        if (task.task->operands[i].access != Access::write && plan_.current(task, i))
          out.push_back({tile, task.position, {}});
      }
      if (all_here) clear = {task.position, clear.tasks + 1};
    }
    return true;
  }

  template <class Space>
  void follow_short_of_room(const Space& space, std::deque<Fetch>& out) {
    begin(space.residents(), space.free_bytes());
    int looked = 0;
    for (const PlannedTask* planned : plan_.on(device_).planned) {
      if (++looked > most_tasks || out.size() >= most_fetches) return;
      for (std::size_t i = 0; i < planned->accesses.size(); ++i) {
        const TileId tile = planned->accesses[i].datum->tile;
        if (!is_present(tile)) {
          std::vector<TileId> victims = take(space.bytes(tile), *planned);
          if (planned->task->operands[i].access != Access::write && plan_.current(*planned, i))
            out.push_back({tile, planned->position, std::move(victims)});
          bytes_[tile] = space.bytes(tile);
        }
        visit(tile, planned->position);
      }
    }
  }

  static PlanSet::const_iterator after(const PlanSet& planned, const Clear& clear);
  /// Every task has to be looked at anew.
  void forget() { plan_.on(device_).clear = {}; }
  void begin(std::span<const Resident> residents, std::size_t free_bytes);
  void reserve(TileId tile);
  bool is_present(TileId tile) {
    reserve(tile);
    return round_of_[tile] == round_ && is_here_[tile];
  }
  /// A task in sight uses the tile; what follows that is looked up once it matters.
  void visit(TileId tile, Position position);
  void present(TileId tile, std::uint64_t next_use);
  /// Makes room; the operands of `planned` stay.
  std::vector<TileId> take(std::size_t bytes, const PlannedTask& planned);
  void rank();
  /// The farthest of the tiles that no task in sight uses; no_tile if there is none.
  TileId take_idle(const PlannedTask& planned);

  Plan& plan_;
  DeviceId device_;
  std::uint64_t departures_ = 0;
  std::size_t free_bytes_ = 0;
  std::uint32_t round_ = 0;
  bool ranked_ = false;  ///< The heap holds the residents: only once room is short.
  std::span<const Resident> residents_;
  std::uint64_t horizon_ = 0;            ///< Position of the last task in sight.
  std::priority_queue<Entry> idle_;      ///< Residents, by their next use from now on.
  std::priority_queue<Entry> farthest_;  ///< Old entries stay; next_use_ tells which count.
  // By tile; they count if round_of_ is the present round.
  std::vector<std::uint32_t> round_of_;
  std::vector<bool> is_here_;
  std::vector<std::uint64_t> next_use_;
  std::vector<std::size_t> bytes_;
  std::vector<Position> visited_at_;  ///< The last task in sight that uses it; 0: none so far.
  std::vector<TileId> visited_;       ///< Until they are ranked.
};

}  // namespace quadriga
