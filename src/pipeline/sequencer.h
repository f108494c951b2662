// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/sequencer.h: chunks by number, whatever order they come in. Pure.
//
// Invariants
//   1. Each number comes, as a chunk or as one that won't come; so nothing waits for ever.
//   2. places_[i] stands for the number next_ + i.
#pragma once

#include <cstdint>
#include <deque>

namespace quadriga {

struct FlowItem;

class Sequencer {
 public:
  /// Null: the chunk of this number won't come; that is known of those that were taken.
  void put(std::uint64_t number, FlowItem* item) {
    if (number < next_) return;
    const auto place = static_cast<std::size_t>(number - next_);
    if (place >= places_.size()) places_.resize(place + 1);
    places_[place] = {item, true};
  }
  /// The chunk that is next; null if it hasn't come.
  FlowItem* front() {
    while (!places_.empty() && places_.front().is_known && !places_.front().item) pop();
    return places_.empty() ? nullptr : places_.front().item;
  }
  /// The same, and takes it out.
  FlowItem* take() {
    FlowItem* const found = front();
    if (found) pop();
    return found;
  }

 private:
  struct Place {
    FlowItem* item = nullptr;
    bool is_known = false;
  };
  void pop() {
    places_.pop_front();
    ++next_;
  }

  std::deque<Place> places_;
  std::uint64_t next_ = 0;
};

}  // namespace quadriga
