// SPDX-License-Identifier: BSD-3-Clause
// src/graph/lookahead.h: what to fetch ahead for a device, and which tiles leave for it. Pure.
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

#include "graph/plan.h"

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

  Lookahead(const Plan& plan, DeviceId device) : plan_(plan), device_(device) {}

  /// Appends the next fetches whose content exists already, in the order of the plan.
  ///
  /// `bytes_of(tile)` is what a tile takes in the device's memory.
  template <class BytesOf>
  void follow(std::span<const Resident> residents, std::size_t free_bytes, BytesOf&& bytes_of,
              std::deque<Fetch>& out) {
    begin(residents, free_bytes);
    int looked = 0;
    for (const PlannedTask* planned : plan_.on(device_).planned) {
      if (++looked > most_tasks || out.size() >= most_fetches) return;
      for (std::size_t i = 0; i < planned->accesses.size(); ++i) {
        const TileId tile = planned->accesses[i].datum->tile;
        if (!is_present(tile)) {
          std::vector<TileId> victims = take(bytes_of(tile), *planned);
          if (planned->task->operands[i].access != Access::write && plan_.current(*planned, i))
            out.push_back({tile, planned->position, std::move(victims)});
          bytes_[tile] = bytes_of(tile);
        }
        present(tile, plan_.next_use_after(tile, device_, planned->position));
      }
    }
  }

 private:
  struct Entry {
    std::uint64_t next_use;
    TileId tile;
    bool operator<(const Entry& other) const noexcept {
      return next_use != other.next_use ? next_use < other.next_use : tile < other.tile;
    }
  };

  void begin(std::span<const Resident> residents, std::size_t free_bytes);
  void reserve(TileId tile);
  bool is_present(TileId tile) {
    reserve(tile);
    return round_of_[tile] == round_ && is_here_[tile];
  }
  void present(TileId tile, std::uint64_t next_use);
  /// Makes room; the operands of `planned` stay.
  std::vector<TileId> take(std::size_t bytes, const PlannedTask& planned);
  void rank();
  /// The farthest of the tiles that no task in sight uses; no_tile if there is none.
  TileId take_idle(const PlannedTask& planned);

  const Plan& plan_;
  DeviceId device_;
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
};

}  // namespace quadriga
