// SPDX-License-Identifier: BSD-3-Clause
// src/device/instructions.h: operations to queue on a backend's streams, in one global order.
//
// Pure: knows no thread, device or clock. The scheduler writes instructions and gets their events
// at once; issuers queue them on a backend, later or on other threads.
//
// Invariants
//   1. Instructions are numbered from 1 in the order of the calls, and each waits only for
//      operations with smaller numbers, so waits form no cycle, whoever carries them out.
//   2. The events of a stream count its operations from 1, like a backend's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/backend.h"
#include "device/operation.h"

namespace quadriga {

/// An operation of a stream, or an event that its later operations wait for.
struct Instruction {
  std::uint64_t number = 0;
  StreamId stream = 0;
  std::uint64_t ticket = 0;  ///< Of the operation; 0 of a wait.
  Operation operation;
};

class Instructions {
 public:
  Event copy(StreamId stream, Copy copy);
  Event launch(StreamId stream, const Launch& launch);
  /// Makes the stream's later operations wait for an event; nothing is written if they do anyway.
  void wait(StreamId stream, Event event);
  /// An operation has ended: nobody needs to wait for it, nor for what its stream ran before.
  void ended(Event event);

  /// Those written since clear(). Who takes them may move from them.
  std::span<Instruction> pending() noexcept { return pending_; }
  std::span<const Instruction> pending() const noexcept { return pending_; }
  void clear() noexcept { pending_.clear(); }
  /// How many were written so far.
  std::uint64_t count() const noexcept { return count_; }

 private:
  struct Stream {
    std::uint64_t issued = 0;
    std::uint64_t ended = 0;
    std::vector<std::uint64_t> waited;  ///< By source stream: the latest ticket waited for.
  };
  template <class Given>
  Event add(StreamId stream, Given&& operation);
  Stream& at(StreamId stream) {
    if (stream >= streams_.size()) streams_.resize(stream + 1);
    return streams_[stream];
  }

  std::vector<Stream> streams_;
  std::vector<Instruction> pending_;
  std::uint64_t count_ = 0;
};

/// Queues one instruction on a backend, in the calling thread. Errors: what the backend throws;
/// internal if the backend counts otherwise.
void carry_out(const Instruction& instruction, Backend& backend);
/// The same for all that are pending, which are cleared.
void carry_out(Instructions& instructions, Backend& backend);

}  // namespace quadriga
