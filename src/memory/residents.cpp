// SPDX-License-Identifier: BSD-3-Clause
// src/memory/residents.cpp: tiles that come and go, in the list and in the heap.
#include "memory/residents.h"

#include <quadriga/error.h>

#include <algorithm>

namespace quadriga {

void Residents::add(TileId tile) {
  if (slots_.size() <= tile) slots_.resize(std::max<std::size_t>(tile + 1, slots_.size() * 2));
  slots_[tile].place = static_cast<std::uint32_t>(tiles_.size());
  tiles_.push_back(tile);
  may_leave(tile);
}

void Residents::remove(TileId tile) {
  Slot& slot = slots_[tile];
  const TileId last = tiles_.back();
  if (marked_.contains(slot.place)) marked_.erase(slot.place);
  if (last != tile) {
    if (marked_.contains(slots_[last].place)) {
      marked_.erase(slots_[last].place);
      marked_.insert(slot.place);
    }
    tiles_[slot.place] = last;
    slots_[last].place = slot.place;
  }
  tiles_.pop_back();
  slot.place = nowhere;
  if (slot.node != nowhere) take_out(slot.node);
}

void Residents::clear() {
  for (const TileId tile : tiles_) slots_[tile].place = slots_[tile].node = nowhere;
  tiles_.clear();
  heap_.clear();
  marked_.clear();
}

void Residents::may_leave(TileId tile) {
  if (slots_[tile].to_ask) return;
  slots_[tile].to_ask = true;
  to_ask_.push_back(tile);
}

void Residents::set(TileId tile, const VictimBound& bound) {
  if (slots_[tile].node == nowhere) {
    slots_[tile].node = static_cast<std::uint32_t>(heap_.size());
    heap_.emplace_back();
  }
  sift(slots_[tile].node, {bound, tile});
}

void Residents::take_out(std::size_t at) {
  slots_[heap_[at].tile].node = nowhere;
  const Entry last = heap_.back();
  heap_.pop_back();
  if (at < heap_.size()) sift(at, last);
}

/// Puts an entry at its level on the way through a node whose entry is replaced.
void Residents::sift(std::size_t at, const Entry& entry) {
  while (at > 0 && heap_[(at - 1) / 2].bound < entry.bound) {
    put(at, heap_[(at - 1) / 2]);
    at = (at - 1) / 2;
  }
  for (;;) {
    std::size_t child = 2 * at + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && heap_[child].bound < heap_[child + 1].bound) ++child;
    if (heap_[child].bound <= entry.bound) break;
    put(at, heap_[child]);
    at = child;
  }
  put(at, entry);
}

void Residents::validate() const {
  for (std::size_t place = 0; place < tiles_.size(); ++place) {
    const Slot& slot = slots_[tiles_[place]];
    if (slot.place != place || (slot.node == nowhere && !slot.to_ask))
      fail(Errc::internal, "a resident tile is not where it is said to be");
  }
  for (std::size_t at = 0; at < heap_.size(); ++at) {
    const Slot& slot = slots_[heap_[at].tile];
    if (slot.node != at || slot.place == nowhere ||
        heap_[(at - 1) / 2 * (at > 0)].bound < heap_[at].bound)
      fail(Errc::internal, "residents are in a wrong order");
  }
  if (marked_.next(tiles_.size()) != PlaceSet::none)
    fail(Errc::internal, "a place without a resident is marked");
}

}  // namespace quadriga
