// SPDX-License-Identifier: BSD-3-Clause
// src/message/waiting.cpp: words for what ranks wait for.
#include "message/waiting.h"

#include <fmt/format.h>

#include <algorithm>

namespace quadriga::message {

using Clock = std::chrono::steady_clock;

// What a rank waits for, as one word: operation, peer + 1, tag + 1.
std::uint64_t waiting_word(const Posting& what) noexcept {
  return static_cast<std::uint64_t>(what.operation) << 56 |
         static_cast<std::uint64_t>((static_cast<std::uint32_t>(what.peer) + 1) & 0xffff) << 32 |
         (static_cast<std::uint32_t>(what.tag) + 1);
}

Clock::time_point end_of(const Patience& patience, Clock::time_point begin) {
  if (patience.seconds < 0) return Clock::time_point::max();
  const std::chrono::duration<double> limit(std::min(patience.seconds, 1e9));
  return patience.since.value_or(begin) + std::chrono::duration_cast<Clock::duration>(limit);
}

std::chrono::nanoseconds nap_after(std::chrono::nanoseconds quiet) noexcept {
  using namespace std::chrono_literals;
  // About what a sleep takes that doesn't sleep, and what long copies can spare.
  constexpr std::chrono::nanoseconds least = 5us, most = 50us;
  constexpr int part = 64;
  return std::clamp(quiet / part, least, most);
}

std::string waiting_text(std::uint64_t word) {
  const auto operation = static_cast<CallKind>(word >> 56);
  const int peer = static_cast<int>(word >> 32 & 0xffff) - 1;
  const int tag = static_cast<int>(static_cast<std::uint32_t>(word & 0xffffffff) - 1);
  if (operation == CallKind::none) return "isn't inside a call";
  std::string other = peer < 0 ? "any rank" : fmt::format("rank {}", peer);
  if (peer == ((own_stream + 1) & 0xffff) - 1) other = "the stream of its array";
  if (operation > CallKind::probe) return fmt::format("{}, for {}", name(operation), other);
  return fmt::format("{} {} {}, {}", name(operation), operation == CallKind::send ? "to" : "from",
                     other, tag < 0 ? "any tag" : fmt::format("tag {}", tag));
}

std::string text_of(const Posting& what) {
  MessageTransfer transfer;
  transfer.sends = what.operation == CallKind::send;
  transfer.operation = what.operation;
  transfer.peer = what.peer;
  transfer.tag = what.tag;
  transfer.group = what.group;
  return transfer.text();
}

std::string waits_of(const SharedSegment& segment) {
  std::string text = "Ranks of the world wait for:";
  for (int rank = 0; rank < segment.shape().ranks; ++rank) {
    const std::uint64_t word = segment.words(rank).waiting.load(std::memory_order_relaxed);
    text += fmt::format("{} rank {}: {}", rank == 0 ? "" : ";", rank, waiting_text(word));
  }
  return text;
}

}  // namespace quadriga::message
