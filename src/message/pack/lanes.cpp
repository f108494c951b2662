// SPDX-License-Identifier: BSD-3-Clause
// src/message/pack/lanes.cpp: stores past the cache, by the widest registers that there are.
#include "message/pack/lanes.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace quadriga::message {
namespace {

constexpr std::size_t lanes = 4;
constexpr std::size_t page = 4096;
// Lines that a lane copies before it is the next one's turn, and how far ahead it reads.
constexpr std::size_t step = 2 * cache_line;
constexpr std::size_t ahead = 4 * cache_line;

using MoveLanes = void (*)(const CopyLane* lane, std::size_t bytes);
using MoveLines = void (*)(std::byte* to, const std::byte* from, std::size_t bytes);

struct Ways {
  MoveLanes in_turn;  // The first `bytes` of four lanes, a multiple of `step`.
  MoveLines lines;
  void (*fence)();
};

#if defined(__x86_64__)

__attribute__((target("avx512f"))) void lines_by_64(std::byte* to, const std::byte* from,
                                                    std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += cache_line)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + at), _mm512_loadu_si512(from + at));
}

__attribute__((target("avx512f"))) void lanes_by_64(const CopyLane* lane, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += step) {
    for (std::size_t i = 0; i < lanes; ++i) {
      const std::byte* from = lane[i].from + at;
      auto* to = reinterpret_cast<__m512i*>(lane[i].to + at);
      _mm_prefetch(from + ahead, _MM_HINT_T0);
      _mm_prefetch(from + ahead + cache_line, _MM_HINT_T0);
      const __m512i first = _mm512_loadu_si512(from);
      const __m512i second = _mm512_loadu_si512(from + cache_line);
      _mm512_stream_si512(to, first);
      _mm512_stream_si512(to + 1, second);
    }
  }
}

__attribute__((target("avx2"))) void line_by_32(std::byte* to, const std::byte* from) {
  auto* target = reinterpret_cast<__m256i*>(to);
  const auto* source = reinterpret_cast<const __m256i*>(from);
  const __m256i first = _mm256_loadu_si256(source), second = _mm256_loadu_si256(source + 1);
  _mm256_stream_si256(target, first);
  _mm256_stream_si256(target + 1, second);
}

__attribute__((target("avx2"))) void lines_by_32(std::byte* to, const std::byte* from,
                                                 std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += cache_line) line_by_32(to + at, from + at);
}

__attribute__((target("avx2"))) void lanes_by_32(const CopyLane* lane, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += step) {
    for (std::size_t i = 0; i < lanes; ++i) {
      const std::byte* from = lane[i].from + at;
      _mm_prefetch(from + ahead, _MM_HINT_T0);
      _mm_prefetch(from + ahead + cache_line, _MM_HINT_T0);
      line_by_32(lane[i].to + at, from);
      line_by_32(lane[i].to + at + cache_line, from + cache_line);
    }
  }
}

void store_fence() { _mm_sfence(); }

#endif

void plain_lines(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

void plain_lanes(const CopyLane* lane, std::size_t bytes) {
  for (std::size_t i = 0; i < lanes; ++i) std::memcpy(lane[i].to, lane[i].from, bytes);
}

Ways widest() noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {lanes_by_64, lines_by_64, store_fence};
  if (__builtin_cpu_supports("avx2")) return {lanes_by_32, lines_by_32, store_fence};
#endif
  return {plain_lanes, plain_lines, [] {}};
}

const Ways& ways() noexcept {
  static const Ways chosen = widest();
  return chosen;
}

// Copies what lies before the first whole line of the destination; says how much that was.
std::size_t copy_head(CopyLane& lane) noexcept {
  const std::size_t behind = reinterpret_cast<std::uintptr_t>(lane.to) % cache_line;
  const std::size_t head = std::min(lane.bytes, behind ? cache_line - behind : 0);
  std::memcpy(lane.to, lane.from, head);
  return head;
}

void drop_first(CopyLane& lane, std::size_t bytes) noexcept {
  lane.to += bytes;
  lane.from += bytes;
  lane.bytes -= bytes;
}

void copy_rest(const CopyLane& lane) noexcept {
  const std::size_t whole = lane.bytes / cache_line * cache_line;
  ways().lines(lane.to, lane.from, whole);
  std::memcpy(lane.to + whole, lane.from + whole, lane.bytes - whole);
}

// The pages of one long run are lanes beside each other.
void move_pages(CopyLane run) noexcept {
  drop_first(run, copy_head(run));
  std::array<CopyLane, lanes> part;
  for (; run.bytes >= lanes * page; drop_first(run, lanes * page)) {
    for (std::size_t i = 0; i < lanes; ++i)
      part[i] = {run.to + i * page, run.from + i * page, page};
    ways().in_turn(part.data(), page);
  }
  copy_rest(run);
}

void move_together(std::array<CopyLane, lanes> lane) noexcept {
  std::size_t common = SIZE_MAX;
  for (CopyLane& each : lane) {
    drop_first(each, copy_head(each));
    common = std::min(common, each.bytes / step * step);
  }
  ways().in_turn(lane.data(), common);
  for (CopyLane& each : lane) {
    drop_first(each, common);
    copy_rest(each);
  }
}

std::size_t own_cache_bytes() noexcept {
  constexpr std::size_t assumed = std::size_t{1} << 20;
#if defined(_SC_LEVEL2_CACHE_SIZE)
  const long told = sysconf(_SC_LEVEL2_CACHE_SIZE);
  if (told > 0) return static_cast<std::size_t>(told);
#endif
  return assumed;
}

}  // namespace

bool exceeds_cache(std::size_t bytes) noexcept {
  static const std::size_t own = own_cache_bytes();
  return bytes > 4 * own;
}

void stream_bytes(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  CopyLane lane{to, from, bytes};
  drop_first(lane, copy_head(lane));
  copy_rest(lane);
}

void LineWriter::open(std::byte* to) noexcept {
  first_ = held_ = reinterpret_cast<std::uintptr_t>(to) % cache_line;
  line_ = to - first_;
}

// Moves the whole lines out, and what remains to the buffer's front.
void LineWriter::write_lines() noexcept {
  std::size_t whole = held_ / cache_line * cache_line;
  const std::byte* from = buffer_.data();
  held_ -= whole;
  if (whole && first_) {
    std::memcpy(line_ + first_, from + first_, cache_line - first_);
    line_ += cache_line;
    from += cache_line;
    whole -= cache_line;
    first_ = 0;
  }
  ways().lines(line_, from, whole);
  line_ += whole;
  std::memmove(buffer_.data(), from + whole, held_);
}

void LineWriter::add_lines(const std::byte* from, std::size_t bytes) noexcept {
  const std::size_t head = (cache_line - held_ % cache_line) % cache_line;
  const std::size_t whole = (bytes - head) / cache_line * cache_line;
  copy_short(buffer_.data() + held_, from, head);
  held_ += head;
  if (held_ == cache_line && !first_) {  // As between runs of several lines.
    ways().lines(line_, buffer_.data(), cache_line);
    line_ += cache_line;
  } else {
    write_lines();
  }
  ways().lines(line_, from + head, whole);
  line_ += whole;
  held_ = bytes - head - whole;
  copy_short(buffer_.data(), from + head + whole, held_);
}

void LineWriter::close() noexcept {
  write_lines();
  std::memcpy(line_ + first_, buffer_.data() + first_, held_ - first_);
  line_ = nullptr;
  first_ = held_ = 0;
}

void StreamedLanes::add(const CopyLane& lane) noexcept {
  if (lane.bytes >= 16 * page) return move_pages(lane);
  for (std::size_t at = 0; at < std::min(lane.bytes, 2 * ahead); at += cache_line)
    __builtin_prefetch(lane.from + at);
  if (count_ == lanes_.size()) move_oldest();
  lanes_[count_++] = lane;
}

void StreamedLanes::move_oldest() noexcept {
  move_together({lanes_[0], lanes_[1], lanes_[2], lanes_[3]});
  std::copy(lanes_.begin() + together, lanes_.begin() + static_cast<std::ptrdiff_t>(count_),
            lanes_.begin());
  count_ -= together;
}

void StreamedLanes::finish() noexcept {
  if (count_ >= together) move_oldest();
  for (std::size_t i = 0; i < count_; ++i) {
    drop_first(lanes_[i], copy_head(lanes_[i]));
    copy_rest(lanes_[i]);
  }
  count_ = 0;
  ways().fence();
}

}  // namespace quadriga::message
