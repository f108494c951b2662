// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/recordings.h: which launches are known, and their programs.
//
// Invariant: `mutex_` guards all of it, and is held while a program is recorded or launched: a
// graph is launched by one thread at a time.
#pragma once

#include <quadriga/codelet.h>

#include <cstddef>
#include <functional>
#include <list>
#include <mutex>
#include <span>
#include <vector>

#include "device/cuda/program.h"
#include "device/meeting.h"

namespace quadriga::cuda {

/// The programs of one variant, or of one group of variants that are launched together. Any thread.
class Recordings {
 public:
  /// How a launch is queued now, and recorded.
  struct Ways {
    std::function<void()> queue;
    std::function<Program()> record;
    cudaStream_t stream = nullptr;  ///< Where its program is launched.
  };

  /// Of parameters the first bytes may differ from launch to launch.
  explicit Recordings(std::size_t ignored_bytes) : ignored_bytes_(ignored_bytes) {}

  /// Queues the launch of some members, by its program from the third time on.
  void queue(std::span<const Meeting::Member> members, const Ways& ways);

 private:
  /// A launch that never comes again is not worth a recording.
  enum class State : std::uint8_t { unknown, known, recorded, refused };
  /// What is queued for a member follows from this.
  struct Key {
    int device = 0;
    std::vector<View> operands;
    std::vector<std::byte> params;
    std::byte* workspace = nullptr;
  };
  struct Recording {
    std::vector<Key> keys;
    State state = State::unknown;
    Program program;
  };

  std::span<const std::byte> params_of(const Meeting::Member& member) const {
    return member.arguments.params.subspan(ignored_bytes_);
  }
  bool names(const Key& key, const Meeting::Member& member) const noexcept;
  Recording& find(std::span<const Meeting::Member> members);

  const std::size_t ignored_bytes_;
  std::mutex mutex_;
  std::list<Recording> all_;
};

}  // namespace quadriga::cuda
