// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/admission.h: which chunks may be in the host's memory, by bytes and by number. Pure.
//
// Invariants
//   1. A chunk is let in with the bytes of its whole way: what it brought and all that its stages
//      will write. It asks for nothing later, so the oldest one can always go on.
//   2. Chunks are let in as the source gives them; one that doesn't fit keeps later ones out.
//   3. What is let in never exceeds the limits, unless a chunk turns out larger than was presumed.
#pragma once

#include <quadriga/chunk.h>
#include <quadriga/error.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace quadriga {

class Admission {
 public:
  /// `purpose`: what the bytes are for, and the option that states them.
  Admission(std::size_t most_bytes, std::size_t most_chunks,
            std::string purpose = "it (host_memory)")
      : most_bytes_(most_bytes),
        most_chunks_(std::max<std::size_t>(1, most_chunks)),
        purpose_(std::move(purpose)) {}

  /// Whether a chunk may come in now.
  bool fits(std::size_t bytes) const noexcept {
    return chunks_ < most_chunks_ && bytes_ <= most_bytes_ && bytes <= most_bytes_ - bytes_;
  }
  /// Errors: too_large if it never will, naming both sizes.
  void check(const ChunkId& chunk, std::size_t bytes) const {
    if (bytes > most_bytes_)
      fail(Errc::too_large, "chunk " + chunk.text() + " needs " + std::to_string(bytes) +
                                " bytes of host memory on its way, and the pipeline has " +
                                std::to_string(most_bytes_) + " for " + purpose_ +
                                "; make chunks smaller, or state more");
  }
  void enter(std::size_t bytes) noexcept {
    bytes_ += bytes;
    ++chunks_;
    most_seen_ = std::max(most_seen_, bytes_);
  }
  void leave(std::size_t bytes) noexcept {
    bytes_ -= bytes;
    --chunks_;
  }
  /// One that was let in has another size than was presumed.
  void resize(std::size_t from, std::size_t to) noexcept {
    bytes_ += to;
    bytes_ -= from;
    most_seen_ = std::max(most_seen_, bytes_);
  }
  /// Whether it is worth to ask the source, whose next chunk is as large as those before at most.
  bool has_room(std::size_t largest) const noexcept {
    return chunks_ < most_chunks_ &&
           (chunks_ == 0 || (bytes_ <= most_bytes_ && largest <= most_bytes_ - bytes_));
  }

  std::size_t bytes() const noexcept { return bytes_; }
  std::size_t chunks() const noexcept { return chunks_; }
  std::size_t most_bytes_held() const noexcept { return most_seen_; }

 private:
  std::size_t most_bytes_;
  std::size_t most_chunks_;
  std::string purpose_;
  std::size_t bytes_ = 0;
  std::size_t chunks_ = 0;
  std::size_t most_seen_ = 0;
};

}  // namespace quadriga
