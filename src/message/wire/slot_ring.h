// SPDX-License-Identifier: BSD-3-Clause
// src/message/wire/slot_ring.h: bounded slots from one rank to another, by credit, without a lock.
//
// Invariants
//   1. One thread at a time writes, and one reads: each side's endpoint has a lock of its own.
//   2. A slot's first word says for which turn its content is valid: turn t of slot t mod slots
//      holds 2 (t + 1), and one more if the content lies in the slot's large part. It is stored
//      after the content; a writer that dies before leaves nothing that is seen.
//   3. A slot is reused once the reader's mark has passed it. The mark only grows, and never
//      beyond what was written; a mark that says otherwise is wrong, and is not followed.
//   4. Stores that a sleeper may wait for, and loads after arming the bell, are sequentially
//      consistent: so either the sleeper sees the store, or the other side sees the armed bell. The
//      reader's mark is such a store each quarter of the ring: a writer that sleeps saw the ring
//      full, so the end of a quarter comes.
//   5. The small parts of all slots lie side by side, before the large ones: short messages touch
//      few pages, each of which the system has to make and clear at the first touch.
#pragma once

#include "message/wire/segment.h"

namespace quadriga::message {

/// What both ends know of a ring.
class SlotRing {
 public:
  SlotRing(std::byte* base, const RingShape& shape) noexcept : base_(base), shape_(shape) {}
  /// Slots, and bytes of all of them.
  std::uint32_t slots() const noexcept { return shape_.slots; }
  std::size_t bytes() const noexcept { return shape_.bytes(); }
  /// Bytes of a slot that a user has.
  std::size_t capacity() const noexcept { return shape_.slot_bytes - sizeof(Word); }

 protected:
  using Word = std::atomic<std::uint64_t>;
  /// Whether so many bytes don't fit the small part.
  bool needs_large(std::size_t bytes) const noexcept {
    return bytes + sizeof(Word) > shape_.small_bytes;
  }
  Word& turn_word(std::uint64_t turn) const noexcept {
    return *reinterpret_cast<Word*>(part(turn, shape_.small_bytes == 0));
  }
  std::byte* content(std::uint64_t turn, bool is_large) const noexcept {
    return part(turn, is_large || shape_.small_bytes == 0) + sizeof(Word);
  }
  std::atomic<std::uint64_t>& mark() const noexcept {
    return reinterpret_cast<ReadMark*>(base_)->consumed;
  }

  std::byte* base_;
  RingShape shape_;
  std::uint64_t turn_ = 0;  ///< The next one to be written, or read.

 private:
  std::byte* part(std::uint64_t turn, bool is_large) const noexcept {
    const std::size_t index = turn & (shape_.slots - 1);
    std::byte* const small = base_ + sizeof(ReadMark);
    if (!is_large) return small + index * shape_.small_bytes;
    return small + shape_.slots * shape_.small_bytes + index * shape_.slot_bytes;
  }
};

class RingWriter : public SlotRing {
 public:
  using SlotRing::SlotRing;
  /// Where the next slot's content goes, of at most so many bytes; null while the ring is full.
  std::byte* reserve(std::size_t bytes) noexcept {
    if (turn_ - consumed_ == shape_.slots && !has_credit()) return nullptr;
    is_large_ = needs_large(bytes);
    return content(turn_, is_large_);
  }
  std::byte* reserve() noexcept { return reserve(capacity()); }
  /// Lets the reader see it. Ring its bell next.
  void publish() noexcept {
    ++turn_;
    turn_word(turn_ - 1).store(2 * turn_ + (is_large_ ? 1 : 0), std::memory_order_seq_cst);
  }

 private:
  bool has_credit() noexcept {
    const std::uint64_t consumed = mark().load(std::memory_order_seq_cst);
    if (consumed - consumed_ > turn_ - consumed_) return false;  // A wrong mark.
    consumed_ = consumed;
    return turn_ - consumed_ < shape_.slots;
  }
  std::uint64_t consumed_ = 0;
  bool is_large_ = false;  ///< What was reserved last.
};

class RingReader : public SlotRing {
 public:
  using SlotRing::SlotRing;
  /// The content of the next slot; null while there is none. At least `capacity()` bytes from there
  /// are the ring's, whatever its writer says.
  const std::byte* front() const noexcept {
    const std::uint64_t word = turn_word(turn_).load(std::memory_order_seq_cst);
    return word / 2 == turn_ + 1 ? content(turn_, word % 2 != 0) : nullptr;
  }
  /// Gives the slot back. True each quarter of the ring: the writer may sleep; ring its bell.
  bool pop() noexcept {
    ++turn_;
    const bool quarter = (turn_ & (shape_.slots / 4 - 1)) == 0;
    mark().store(turn_, quarter ? std::memory_order_seq_cst : std::memory_order_release);
    return quarter;
  }
};

}  // namespace quadriga::message
