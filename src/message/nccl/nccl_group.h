// SPDX-License-Identifier: BSD-3-Clause
// src/message/nccl/nccl_group.h: this rank's part of a communicator of NCCL's, on one GPU.
//
// Invariants
//   1. No call waits for another rank: what is started goes on by itself, and is_joined() and
//      has_ended() tell how far it is.
//   2. A group that failed, or whose wait was given up, is aborted, once, by a thread of its own,
//      which is waited for at most `patience_for_abort`: nothing uses the memory afterwards, or the
//      log says that it may.
//   3. One thread at a time uses a group. In a child after fork() it is left alone.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "message/device_local.h"
#include "message/nccl/choice.h"
#include "message/nccl/library.h"

namespace quadriga::message {

/// What a collective asks of NCCL.
struct NcclCall {
  TreeCollective kind = TreeCollective::broadcast;
  int root = 0;
  /// What a rank gives, but for all_gather what it gets.
  std::int64_t bytes = 0;
  NcclNumbers numbers;
};

class NcclGroup {
 public:
  /// Starts joining the ranks.
  NcclGroup(const NcclLibrary& library, Home home, int ranks, int rank, const NcclId& id);
  /// Ends it with the others' parts, if they end theirs within `patience_for_end`.
  ~NcclGroup();
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;
  static constexpr std::chrono::seconds patience_for_end{1}, patience_for_abort{5};

  /// Whether all ranks have joined. Errors: unavailable with NCCL's reason.
  bool is_joined();
  /// Starts a collective of memory of the device, side by side. Its end is asked for before the
  /// next one. Errors: unavailable with NCCL's reason.
  void start(const NcclCall& call, const void* from, void* into);
  /// Whether it has ended on this rank. Errors: unavailable with NCCL's reason; device_lost.
  bool has_ended();
  /// Ends what is under way, whatever the other ranks do.
  void abandon() noexcept;

  const Home& home() const noexcept { return home_; }

 private:
  enum class State : std::uint8_t { joining, idle, queueing, running, dead };
  bool is_through();
  void check(int result) const;
  bool end_with_others() noexcept;

  const NcclLibrary& library_;
  const Home home_;
  const int ranks_;
  const int owner_;
  const std::shared_ptr<NcclHandle> handle_;  ///< NCCL writes it while ranks join.
  void* stream_ = nullptr;
  State state_ = State::joining;
  PortTicket last_{};  ///< Behind the collective that runs.
};

}  // namespace quadriga::message
