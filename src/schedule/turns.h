// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/turns.h: whose turn it is to decide: devices issue one task each by rounds, then
// fill up.
//
// Pure. One decision a step, so that whoever carries them out sees to each before the next.
//
// Invariants
//   1. A round asks each device once. It begins with the device after the one that issued last,
//      from one begin() to the next as well, so that of those which need the same tiles each
//      fetches some.
//   2. There is another round while one has issued something, or something could be placed; but no
//      more than `most_rounds`, after which has_more() tells whether there would be one.
//   3. Devices fill up after all rounds, in their order, each until it issues nothing more.
#pragma once

#include <cstddef>

namespace quadriga {

class Turns {
 public:
  /// `most_rounds`: from one begin() to the next; 0: as many as there are.
  Turns(std::size_t devices, int most_rounds) : devices_(devices), most_rounds_(most_rounds) {}

  /// Before the first step() after events.
  void begin() noexcept {
    phase_ = Phase::rounds;
    round_ = 0;
    more_ = false;
    begin_round();
  }

  /// One decision, of the first who makes one; false once all were asked.
  ///   bool issue(std::size_t device)  issues a task of a device, if there is one.
  ///   bool place()                    gives some device a task that it may issue.
  ///   bool fill(std::size_t device)   what a device does that has nothing to issue; true: it has.
  template <class Issue, class Place, class Fill>
  bool step(Issue&& issue, Place&& place, Fill&& fill) {
    if (phase_ == Phase::rounds && take_turns(issue, place)) return true;
    for (; phase_ == Phase::filling && asked_ < devices_; ++asked_)
      if (fill(asked_)) return true;
    phase_ = Phase::settled;
    return false;
  }

  /// It stopped at `most_rounds`, or somebody was given something to issue meanwhile.
  bool has_more() const noexcept { return more_; }
  void set_more(bool more) noexcept { more_ = more; }

 private:
  enum class Phase { rounds, filling, settled };

  void begin_round() noexcept {
    asked_ = 0;
    first_ = next_;
  }
  template <class Issue, class Place>
  bool take_turns(Issue& issue, Place& place) {
    while (true) {
      while (asked_ < devices_) {
        const std::size_t device = (first_ + asked_++) % devices_;
        if (!issue(device)) continue;
        more_ = true;
        next_ = (device + 1) % devices_;
        return true;
      }
      ++round_;
      if (!more_) more_ = place();
      if (!more_ || round_ == most_rounds_) break;
      more_ = false;
      begin_round();
    }
    phase_ = Phase::filling;
    asked_ = 0;
    return false;
  }

  const std::size_t devices_;
  const int most_rounds_;
  Phase phase_ = Phase::settled;
  int round_ = 0;
  std::size_t asked_ = 0;  ///< Devices, in the round or of those that fill up.
  std::size_t first_ = 0;  ///< The device that begins the round.
  std::size_t next_ = 0;   ///< The device after the one that issued last.
  bool more_ = false;      ///< Some device issued in this round, or can now.
};

}  // namespace quadriga
