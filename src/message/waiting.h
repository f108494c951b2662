// SPDX-License-Identifier: BSD-3-Clause
// src/message/waiting.h: what a rank's call waits for, as all ranks can read it, and how long.
#pragma once

#include <atomic>
#include <chrono>
#include <string>

#include "message/posting.h"
#include "message/wire/segment.h"

namespace quadriga::message {

/// Stands for a peer where a call waits for what a stream of the program holds.
inline constexpr int own_stream = -2;

/// Kind of the call, peer and tag in one word, so that it is never read half-written.
std::uint64_t waiting_word(const Posting& what) noexcept;
/// "recv from rank 1, tag 5"; ranks are the world's.
std::string waiting_text(std::uint64_t word);
/// The same by the ranks of the call's communicator.
std::string text_of(const Posting& what);
/// What each rank waits for.
std::string waits_of(const SharedSegment& segment);

/// How long to sleep while devices copy, of which not all tell when they have, after so long
/// without any news: a small part of that, so that an end is seen soon after it.
std::chrono::nanoseconds nap_after(std::chrono::nanoseconds quiet) noexcept;

/// The own word is taken back when the wait ends.
struct WaitingNote {
  std::atomic<std::uint64_t>& word;
  ~WaitingNote() { word.store(0, std::memory_order_relaxed); }
};

std::chrono::steady_clock::time_point end_of(const Patience& patience,
                                             std::chrono::steady_clock::time_point begin);

}  // namespace quadriga::message
