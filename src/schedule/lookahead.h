// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/lookahead.h: what to fetch ahead for a device, and which tiles leave for it. Pure.
//
// Follows the device's plan from its head: which tiles of the tasks in sight are missing, and of
// which the content exists, is kept up by what changed. Where all of them have room that is all
// there is to say. Else it replaces as Belady's rule would at the moment of each
// miss; a fetch may then be made as soon as its victims are not needed any more before it. Nothing
// leaves that the rule would have kept, so fetching ahead costs no traffic. One exception keeps
// copies from waiting for tiles that are still in use: what no task in sight uses leaves first.
// Source: Cao, Felten, Karlin, Li, A study of integrated prefetching and caching strategies,
// SIGMETRICS 1995 (the algorithm "conservative").
#pragma once

#include <quadriga/error.h>

#include <algorithm>
#include <compare>
#include <cstdint>
#include <deque>
#include <span>
#include <utility>
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
  static constexpr std::size_t most_tasks = 512;
  static constexpr std::size_t most_fetches = 16;

  Lookahead(Plan& plan, DeviceId device)
      : order_(plan.on(device)), uses_(plan.uses()), device_(device) {}

  /// Appends the next fetches whose content exists already, in the order of the plan.
  ///
  /// `space` tells of the device's memory: has(tile), bytes(tile) that a tile takes there,
  /// free_bytes() and residents(). Tiles that leave it are told to the uses (UseTable::departed).
  /// Cost:  by what has changed since the last call and by what is appended, as long as there is
  ///        room for all tiles in sight; else by the tasks in sight and the residents.
  template <class Space>
  void follow(const Space& space, std::deque<Fetch>& out) {
    catch_up(space);
    if (wanted_bytes_ <= space.free_bytes()) return append(space, out);
    if (!can_fetch(space)) return;
    const std::size_t before = out.size();
    if (follow_with_room(space, out)) return;
    out.resize(before);
    follow_short_of_room(space, out);
  }

  /// Whether follow() may append anything, or take note of something: false if it certainly won't.
  bool has_news() const noexcept {
    const std::size_t in_sight = order_.tasks_in_sight();
    return !fetchable_.empty() || uses_.has_changed(device_) || in_sight > most_tasks ||
           (in_sight < most_tasks && in_sight < order_.planned().size());
  }

  /// Whether a fetch that waits for its victims is still the next one to make: nothing that is
  /// missing comes before it, and no other tile could leave sooner.
  /// Cost:  by what has changed, and by the residents.
  template <class Space>
  bool holds(const Space& space, const Fetch& fetch) {
    catch_up(space);
    if (wanted_bytes_ <= space.free_bytes() || !can_fetch(space)) return false;
    if (fetchable_.begin().key().first < fetch.position) return false;
    const auto is_idle = [&](TileId tile) {
      return !order_.is_in_sight(uses_.next_use(tile, device_));
    };
    return std::ranges::all_of(fetch.victims, is_idle) ||
           std::ranges::none_of(space.residents(), is_idle, &Resident::tile);
  }

  /// Throws internal if a tile is not known as what it is.
  template <class Space>
  void validate(const Space& space) const;

 private:
  void validate() const;
  struct Entry {
    std::uint64_t next_use;
    TileId tile;
    auto operator<=>(const Entry&) const = default;
  };
  /// A task's operand; they come in the order of the plan.
  using Operand = std::pair<Position, std::size_t>;
  /// A tile as of its first use in sight.
  struct Wanted {
    std::size_t bytes = 0;   ///< That it needs.
    bool missing = false;    ///< A task in sight uses it, and it isn't in the memory.
    bool fetchable = false;  ///< And what that task is to read exists already.
    Operand operand;         ///< Of that task, if it is fetchable.
  };

  /// Brings what is known of the tiles in sight up to date.
  template <class Space>
  void catch_up(const Space& space) {
    const auto look = [&](const PlannedTask& task) {
      for (const PlannedAccess& access : task.accesses) examine(space, access.tile);
    };
    while (order_.tasks_in_sight() > most_tasks) look(order_.retreat());
    order_.advance(most_tasks, look);
    uses_.take_changed(device_, [&](TileId tile) { examine(space, tile); });
  }

  template <class Space>
  void examine(const Space& space, TileId tile) {
    const PlannedAccess* const use = uses_.first_use(tile, device_);
    const bool is_missing = use && order_.is_in_sight(use->position) && !space.has(tile);
    if (tile >= wanted_.size()) {
      if (!is_missing) return;
      wanted_.resize(std::max<std::size_t>(tile + 1, wanted_.size() * 2));
    }
    forget(tile);
    if (is_missing) want(tile, *use, space.bytes(tile));
  }
  void forget(TileId tile);
  void want(TileId tile, const PlannedAccess& use, std::size_t bytes);
  /// It has come meanwhile, or what its first task is to read doesn't exist yet.
  template <class Space>
  bool is_stale(const Space& space, TileId tile) const {
    return space.has(tile) || !uses_.reads_present(*uses_.first_use(tile, device_));
  }
  /// Whether this is the use for which a tile is fetchable.
  bool is_known_at(const PlannedAccess& use) const {
    return use.tile < wanted_.size() && wanted_[use.tile].fetchable &&
           wanted_[use.tile].operand == Operand{use.position, use.operand};
  }
  /// Whether there is anything to fetch, with room or without.
  template <class Space>
  bool can_fetch(const Space& space) {
    while (!fetchable_.empty()) {
      const TileId first = *fetchable_.begin();
      if (!is_stale(space, first)) return true;
      examine(space, first);
    }
    return false;
  }
  /// There is room for all that is missing.
  template <class Space>
  void append(const Space& space, std::deque<Fetch>& out) {
    stale_.clear();
    for (auto next = fetchable_.begin(); next != fetchable_.end(); ++next) {
      const Position position = next.key().first;
      if (out.size() >= most_fetches && out.back().position != position) break;
      if (is_stale(space, *next))
        stale_.push_back(*next);
      else
        out.push_back({*next, position, {}});
    }
    for (const TileId tile : stale_) examine(space, tile);
  }

  /// The same where room is short for all in sight, but perhaps not for the next fetches. False if
  /// it is.
  template <class Space>
  bool follow_with_room(const Space& space, std::deque<Fetch>& out) {
    std::size_t looked = 0;
    begin({}, space.free_bytes());
    for (const PlannedTask* planned : order_.planned()) {
      const PlannedTask& task = *planned;
      if (++looked > most_tasks || out.size() >= most_fetches) return true;
      for (std::size_t i = 0; i < task.accesses.size(); ++i) {
        const TileId tile = task.accesses[i].tile;
        if (space.has(tile) || is_present(tile)) continue;
        const std::size_t bytes = space.bytes(tile);
        if (free_bytes_ < bytes) return false;
        free_bytes_ -= bytes;
        mark(tile);
        if (uses_.reads_present(task.accesses[i])) out.push_back({tile, task.position, {}});
      }
    }
    return true;
  }

  /// Ends behind what can be fetched: what would leave and come again is here as long as nothing
  /// has left for a fetch.
  template <class Space>
  void follow_short_of_room(const Space& space, std::deque<Fetch>& out) {
    begin(space.residents(), space.free_bytes());
    std::size_t looked = 0, left = fetchable_.size();
    for (const PlannedTask* planned : order_.planned()) {
      if (++looked > most_tasks || out.size() >= most_fetches || left == 0) return;
      for (std::size_t i = 0; i < planned->accesses.size(); ++i) {
        const TileId tile = planned->accesses[i].tile;
        if (!is_present(tile)) {
          std::vector<TileId> victims = take(space.bytes(tile), *planned);
          if (uses_.reads_present(planned->accesses[i])) {
            left -= is_known_at(planned->accesses[i]);
            out.push_back({tile, planned->position, std::move(victims)});
          }
          bytes_[tile] = space.bytes(tile);
        }
        visit(planned->accesses[i]);
      }
    }
  }

  void begin(std::span<const Resident> residents, std::size_t free_bytes);
  void reserve(TileId tile) {
    if (tile >= round_of_.size()) grow(tile);
  }
  void grow(TileId tile);
  bool is_present(TileId tile) {
    reserve(tile);
    return round_of_[tile] == round_ && is_here_[tile];
  }
  /// A task in sight uses its tile; what follows that is looked up once it matters.
  void visit(const PlannedAccess& use);
  /// It is in the memory at this moment of the plan.
  void mark(TileId tile) {
    round_of_[tile] = round_;
    is_here_[tile] = true;
  }
  /// The same, and from now on it may leave.
  void present(TileId tile, std::uint64_t next_use) {
    mark(tile);
    next_use_[tile] = next_use;
    farthest_.push_back({next_use, tile});
  }
  /// Makes room; the operands of `planned` stay.
  std::vector<TileId> take(std::size_t bytes, const PlannedTask& planned);
  void rank();
  static Entry take_greatest(std::vector<Entry>& heap);
  /// The farthest of the tiles that no task in sight uses; no_tile if there is none.
  TileId take_idle(const PlannedTask& planned);

  DeviceOrder& order_;
  UseTable& uses_;
  DeviceId device_;
  std::vector<Wanted> wanted_;  ///< By tile.
  SortedBlocks<Operand, TileId> fetchable_;
  std::size_t wanted_bytes_ = 0;  ///< Of what is missing.
  std::vector<TileId> stale_;

  // Short of room.
  std::size_t free_bytes_ = 0;
  std::uint32_t round_ = 0;
  bool ranked_ = false;  ///< The heaps hold the residents: only once room is short.
  std::span<const Resident> residents_;
  std::uint64_t horizon_ = 0;    ///< Position of the last task in sight.
  std::vector<Entry> idle_;      ///< A heap: residents, by their next use from now on.
  std::vector<Entry> farthest_;  ///< A heap. Old entries stay; next_use_ tells which count.
  // By tile; they count if round_of_ is the present round.
  std::vector<std::uint32_t> round_of_;
  std::vector<bool> is_here_;
  std::vector<std::uint64_t> next_use_;
  std::vector<std::size_t> bytes_;
  std::vector<const PlannedAccess*> visited_by_;  ///< The last use in sight; null: none so far.
  std::vector<TileId> visited_;                   ///< Until they are ranked.
};

template <class Space>
void Lookahead::validate(const Space& space) const {
  for (const PlannedTask* planned : order_.planned()) {
    if (!order_.is_in_sight(planned->position)) break;
    for (const PlannedAccess& access : planned->accesses) {
      const TileId tile = access.tile;
      // What has come is taken note of when it is about to be fetched, or its task is issued.
      if (space.has(tile)) continue;
      const PlannedAccess& use = *uses_.first_use(tile, device_);
      if (tile >= wanted_.size() || !wanted_[tile].missing)
        fail(Errc::internal, "Lookahead: a missing tile is unknown");
      const Wanted& known = wanted_[tile];
      if (uses_.reads_present(use) &&
          (!known.fetchable || known.operand != Operand{use.position, use.operand}))
        fail(Errc::internal, "Lookahead: a content that exists is unknown");
    }
  }
  validate();
}

}  // namespace quadriga
