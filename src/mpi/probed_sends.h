// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/probed_sends.h: which synchronous sends were only probed so far.
//
// MPI ends a synchronous send of an envelope once the envelope was taken, by a receive or by a
// probe that opens it. Such a send has a slot in memory that all ranks share, where the receiver
// notes that it was opened by a probe, and that its receive has begun.
//
// Invariants
//   1. A slot is its sender's from take() until its Slot goes. In between only the receiver of its
//      envelope writes it, and nobody once the sender has seen that the receive has begun.
//   2. A receiver is `opening` before MPI can tell the sender that an envelope was taken, and holds
//      the slot before it stops opening. A sender that was told so, and sees afterwards that the
//      receiver isn't opening, sees the slot held if it is.
//   3. Nothing that came from another rank is used as an index before it was checked.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "mpi/native.h"

namespace quadriga::mpi {

class ProbedSends {
 public:
  static constexpr int slots_per_rank = 1024;
  /// Memory of the first rank that the others, processes of one host and user, find there.
  struct File {
    int process = 0;
    int descriptor = -1;  ///< -1: there is none.
  };
  /// The first rank closes it once all have opened it.
  static File create(int ranks) noexcept;
  static void close(const File& file) noexcept;
  /// Null if this rank can't have it.
  static std::unique_ptr<ProbedSends> open(const File& file, int own, int ranks) noexcept;
  ~ProbedSends();
  ProbedSends(const ProbedSends&) = delete;
  ProbedSends& operator=(const ProbedSends&) = delete;

  /// A sender's slot, given back when this goes.
  class Slot {
   public:
    Slot() = default;
    Slot(ProbedSends* owner, int index) noexcept : owner_(owner), index_(index) {}
    Slot(Slot&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)), index_(std::exchange(other.index_, -1)) {}
    Slot& operator=(Slot&& other) noexcept {
      std::swap(owner_, other.owner_);
      std::swap(index_, other.index_);
      return *this;
    }
    ~Slot() {
      if (owner_ != nullptr) owner_->give_back(index_);
    }
    int index() const noexcept { return index_; }
    explicit operator bool() const noexcept { return owner_ != nullptr; }

   private:
    ProbedSends* owner_ = nullptr;
    int index_ = -1;
  };

  // The sender's side.
  /// Empty if all are in use.
  Slot take() noexcept;
  /// After MPI has ended the send of the envelope: whether its receive is still to begin.
  bool is_waiting(int slot, int receiver) const noexcept;

  // The receiver's side.
  /// Lives while an envelope is taken from MPI for a probe.
  class Opening {
   public:
    explicit Opening(const ProbedSends* probed) noexcept : probed_(probed) { add(1); }
    ~Opening() { add(-1); }
    Opening(const Opening&) = delete;
    Opening& operator=(const Opening&) = delete;

   private:
    void add(int by) noexcept;
    const ProbedSends* probed_;
  };
  void hold(int sender, int slot) noexcept { set(sender, slot, State::held); }
  void begin_receive(int sender, int slot) noexcept { set(sender, slot, State::taken); }

 private:
  enum class State : std::uint32_t { free, taken, held };
  struct alignas(64) Rank {
    std::atomic<std::uint32_t> opening{0};  ///< Threads that open an envelope now.
    std::atomic<State> slots[slots_per_rank]{};
  };
  ProbedSends(Rank* ranks, int size, int own) noexcept : ranks_(ranks), size_(size), own_(own) {}
  void give_back(int slot) noexcept;
  void set(int sender, int slot, State state) noexcept;

  Rank* ranks_;
  int size_;
  int own_;
  std::atomic<unsigned> next_{0};
};

}  // namespace quadriga::mpi
