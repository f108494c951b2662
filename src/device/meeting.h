// SPDX-License-Identifier: BSD-3-Clause
// src/device/meeting.h: variants of tasks that start together meet, and one works for all.
//
// Invariants
//   1. `mutex_` guards all members, and isn't held while the work runs.
//   2. States follow each other: open, working, over; or open, over. Once it is over nobody joins.
//   3. What a member brought is valid as long as it is in join(): none leaves while others work.
#pragma once

#include <quadriga/codelet.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

namespace quadriga {

/// Of one gang (graph/gang.h): each of its tasks comes once. It outlives their variants.
class Meeting {
 public:
  /// What a member brings.
  struct Member {
    Arguments arguments;
    int device = 0;  ///< As the member's kind of device numbers it.
  };
  using Work = std::function<void(std::span<const Member>)>;

  /// `broken`: that of the gang, which says that some member never comes.
  Meeting(std::size_t members, const std::atomic<bool>& broken)
      : broken_(broken), members_(members) {}

  /// Waits for the other members. The last to come calls its `work` with what all brought, in
  /// their order; the others return once that has ended.
  ///
  /// Errors:  in all of them what the work threw; cancelled if the gang broke before all came, and
  ///          for who comes after that.
  void join(std::size_t index, const Member& member, const Work& work);
  /// Whether all members have left: nobody uses it any more.
  bool has_ended() const;

 private:
  enum class State : std::uint8_t { open, working, over };

  const std::atomic<bool>& broken_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::open;
  std::vector<Member> members_;
  std::size_t came_ = 0;
  std::size_t left_ = 0;
  std::exception_ptr error_;
};

}  // namespace quadriga
