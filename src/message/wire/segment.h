// SPDX-License-Identifier: BSD-3-Clause
// src/message/wire/segment.h: the memory that the ranks of one host share: rings, claims and bells.
//
// Invariants
//   1. The segment holds no lock. Every word is written by atomic stores of one rank, or changed by
//      compare-and-swap; a rank that dies leaves no word that another waits for without asking
//      whether it lives.
//   2. Sizes come from SegmentShape, which every rank computes from the number of ranks; nothing
//      that is read from the segment is used as an offset or a size before it was checked.
//   3. The file is sealed against shrinking before anybody maps it: no access can fault.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace quadriga::message {

inline constexpr std::size_t line_bytes = 64;
/// More ranks than this on one host are refused.
inline constexpr int most_ranks = 256;
/// Large messages that a rank offers another at a time; later ones queue behind them.
inline constexpr std::uint32_t claims_per_pair = 4096;

/// What a rank says to all others: who is to be woken and how, whether it has left, what it awaits.
struct alignas(line_bytes) RankWords {
  std::atomic<std::uint32_t> armed{0};    ///< Who sleeps (Doorbell); cleared by who wakes.
  std::atomic<std::uint32_t> bell{0};     ///< Calls sleep on it.
  std::atomic<std::uint32_t> left{0};     ///< 1 once it has closed its communicator.
  std::atomic<std::uint64_t> waiting{0};  ///< What its call waits for (Waiting), 0: nothing.
};

/// Questions that the ranks of a world may agree on (agreement.h).
inline constexpr std::uint32_t most_agreements = 256;

/// A question, and whose proposal was chosen.
struct AgreementWords {
  std::atomic<std::uint64_t> key{0};     ///< 0: none.
  std::atomic<std::uint32_t> chosen{0};  ///< The rank and one more; 0: none yet.
};

/// What a rank proposes.
struct ProposalWords {
  std::array<std::atomic<std::uint64_t>, most_ranks / 64> words{};
};

/// How far a reader of a ring is.
struct alignas(line_bytes) ReadMark {
  std::atomic<std::uint64_t> consumed{0};
};

/// A large message's state (claims.h).
struct ClaimWord {
  std::atomic<std::uint64_t> word{0};
};

/// Slots of one direction between two ranks, as they lie in the segment.
struct RingShape {
  std::uint32_t slots = 0;
  std::size_t slot_bytes = 0;
  std::size_t small_bytes = 0;  ///< Of a slot's small part; 0: it has none.
  std::size_t bytes() const noexcept {
    return sizeof(ReadMark) + slots * (small_bytes + slot_bytes);
  }
};

/// Where everything is: it follows from the number of ranks alone.
struct SegmentShape {
  explicit SegmentShape(int ranks) noexcept;

  int ranks;
  RingShape messages;  ///< Envelopes with what fits beside them.
  RingShape pieces;    ///< Of large messages that can't be read in place.
  /// Of one rank: claims_per_pair for each other one.
  std::uint32_t claims() const noexcept {
    return claims_per_pair * static_cast<std::uint32_t>(ranks);
  }
  std::size_t bytes() const noexcept;
};

/// A mapping of the segment; an anonymous one where all ranks are threads of this process.
class SharedSegment {
 public:
  /// Memory of this process alone.
  static std::shared_ptr<SharedSegment> local(int ranks);
  /// Maps what `create` made. Errors: invalid_argument if size or seals aren't as they must be.
  static std::shared_ptr<SharedSegment> map(int ranks, int descriptor);
  /// A sealed memory file of the right size; the caller closes it.
  /// Errors: unavailable with the system's reason.
  static int create(int ranks);

  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  const SegmentShape& shape() const noexcept { return shape_; }
  /// Counts ranks that left.
  std::atomic<std::uint32_t>& departures() const noexcept;
  RankWords& words(int rank) const noexcept;
  ClaimWord& claim(int rank, std::uint32_t index) const noexcept;
  AgreementWords& agreement(std::uint32_t place) const noexcept;
  ProposalWords& proposal(std::uint32_t place, int rank) const noexcept;
  /// What a rank found out about mapping another one's memory of devices (PairPath).
  std::atomic<std::uint32_t>& path(int from, int to) const noexcept;
  /// Where the rings from one rank to another begin.
  std::byte* message_ring(int from, int to) const noexcept;
  std::byte* piece_ring(int from, int to) const noexcept;

 private:
  SharedSegment(const SegmentShape& shape, std::byte* base) noexcept : shape_(shape), base_(base) {}
  SegmentShape shape_;
  std::byte* base_;
};

}  // namespace quadriga::message
