// SPDX-License-Identifier: BSD-3-Clause
// src/engine/start_order.h: which messages of tasks may start: pure.
//
// Messages between two ranks must start in the order in which their tasks were submitted, whatever
// data become ready first; else a message would meet another's receive.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>

namespace quadriga {

class StartOrder {
 public:
  /// Sends keep one order for each receiver: it may take any tag. Receives wait only for earlier
  /// ones that could take the same message.
  enum class Of : std::uint8_t { sends, receives };
  explicit StartOrder(Of of) noexcept : of_(of) {}

  /// A task was submitted. Negative peers and tags stand for any.
  std::uint64_t enter(int peer, int tag) {
    entries_[++last_] = {peer, tag};
    return last_;
  }
  /// Its data are ready; false if it has left.
  bool ready(std::uint64_t number) {
    const bool is_here = entries_.contains(number);
    if (is_here) ready_.insert(number);
    return is_here;
  }
  /// It will not start; false if it has started or left before.
  bool leave(std::uint64_t number) {
    ready_.erase(number);
    return entries_.erase(number) > 0;
  }
  /// The first that may start now; it counts as started.
  std::optional<std::uint64_t> next() {
    for (const std::uint64_t number : ready_)
      if (is_first(number)) {
        leave(number);
        return number;
      }
    return std::nullopt;
  }
  /// Of those that have not started.
  std::size_t size() const noexcept { return entries_.size(); }

 private:
  struct Entry {
    int peer = 0;
    int tag = 0;
  };
  static bool meet(int a, int b) noexcept { return a < 0 || b < 0 || a == b; }
  bool is_first(std::uint64_t number) const {
    const Entry& own = entries_.at(number);
    for (const auto& [earlier, entry] : entries_) {
      if (earlier == number) return true;
      if (meet(entry.peer, own.peer) && (of_ == Of::sends || meet(entry.tag, own.tag)))
        return false;
    }
    return true;
  }

  Of of_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Entry> entries_;
  std::set<std::uint64_t> ready_;
};

}  // namespace quadriga
