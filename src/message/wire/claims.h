// SPDX-License-Identifier: BSD-3-Clause
// src/message/wire/claims.h: who may touch a large message's memory: one word a message, by
// compare-and-swap.
//
// Invariants
//   1. A word holds a state and the number of the message that it is about. Every change names the
//      state and number that it expects: what is said of an earlier message changes nothing.
//   2. The sender's memory is read by another process in state `claimed`; what was read counts
//      only if the state then changes from `claimed` to `done`. A sender that gives up withdraws at
//      once, from `offered` and from `claimed`: what is read of its memory later is thrown away.
//   3. `done` and `refused` end a message for the sender, `withdrawn` and `abandoned` for the
//      receiver, who acknowledges the latter by `done`: until then the word isn't used again.
//
//   offered -> claimed    the receiver has a receive for it
//   claimed -> refused    the elements differ
//   claimed -> done       the receiver has read the sender's memory, or wants none of it
//   claimed -> wanted     the sender sends pieces; the receiver may discard, the sender abandon
//   claimed -> held       a device copies memory of this very process: the sender waits for `done`
//                         before it takes it back, which needs no other process
#pragma once

#include "message/wire/segment.h"

namespace quadriga::message {

enum class ClaimState : std::uint32_t {
  free,
  offered,
  claimed,
  wanted,
  done,
  refused,
  discarded,
  withdrawn,
  abandoned,
  held,
};

/// One large message of one sender.
struct Claim {
  std::uint32_t index = 0;
  std::uint32_t number = 0;  ///< Of the uses of the word.
  bool operator==(const Claim&) const = default;
};

/// The words of one rank's messages.
class Claims {
 public:
  Claims(const SharedSegment& segment, int sender) noexcept : segment_(&segment), sender_(sender) {}

  void offer(Claim claim) const noexcept {
    word(claim).store(code(claim, ClaimState::offered), std::memory_order_seq_cst);
  }
  /// False if the state isn't the one expected, or the word is about another message by now.
  bool change(Claim claim, ClaimState from, ClaimState to) const noexcept {
    std::uint64_t expected = code(claim, from);
    return word(claim).compare_exchange_strong(expected, code(claim, to),
                                               std::memory_order_seq_cst);
  }
  /// `free` if it is about another message.
  ClaimState state(Claim claim) const noexcept {
    const std::uint64_t found = word(claim).load(std::memory_order_seq_cst);
    if (found >> 32 != claim.number) return ClaimState::free;
    return static_cast<ClaimState>(found & 0xffffffff);
  }

 private:
  static std::uint64_t code(Claim claim, ClaimState state) noexcept {
    return std::uint64_t{claim.number} << 32 | static_cast<std::uint32_t>(state);
  }
  std::atomic<std::uint64_t>& word(Claim claim) const noexcept {
    return segment_->claim(sender_, claim.index).word;
  }
  const SharedSegment* segment_;
  int sender_;
};

}  // namespace quadriga::message
