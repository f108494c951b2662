// SPDX-License-Identifier: BSD-3-Clause
// src/message/pack/copy_few.h: copies of a few bytes without a call, by the number of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace quadriga::message {

/// Copies 1 to 16 bytes by two copies that may meet.
inline void copy_few(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  const auto ends = [&]<class Word>(Word first) {
    Word last;
    std::memcpy(&first, from, sizeof(Word));
    std::memcpy(&last, from + bytes - sizeof(Word), sizeof(Word));
    std::memcpy(to, &first, sizeof(Word));
    std::memcpy(to + bytes - sizeof(Word), &last, sizeof(Word));
  };
  if (bytes >= 8) return ends(std::uint64_t{});
  if (bytes >= 4) return ends(std::uint32_t{});
  if (bytes >= 2) return ends(std::uint16_t{});
  if (bytes) *to = *from;
}

/// Copies a run that is too short for memcpy's start to be worth it.
inline void copy_short(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  struct Block {
    std::uint64_t words[2];
  };
  if (bytes < sizeof(Block)) return copy_few(to, from, bytes);
  Block last;
  std::memcpy(&last, from + bytes - sizeof(Block), sizeof(Block));
  for (std::size_t at = 0; at + sizeof(Block) < bytes; at += sizeof(Block)) {
    Block block;
    std::memcpy(&block, from + at, sizeof(Block));
    std::memcpy(to + at, &block, sizeof(Block));
  }
  std::memcpy(to + bytes - sizeof(Block), &last, sizeof(Block));
}

/// Calls action with a constant of `bytes` if it is a usual size of units, else with 0.
template <class Action>
void with_size(std::int64_t bytes, Action action) {
  switch (bytes) {
    case 1:
      return action.template operator()<1>();
    case 2:
      return action.template operator()<2>();
    case 4:
      return action.template operator()<4>();
    case 8:
      return action.template operator()<8>();
    case 12:
      return action.template operator()<12>();
    case 16:
      return action.template operator()<16>();
    case 24:
      return action.template operator()<24>();
    case 32:
      return action.template operator()<32>();
    case 48:
      return action.template operator()<48>();
    case 64:
      return action.template operator()<64>();
    default:
      return action.template operator()<0>();
  }
}

/// Copies a unit of constant size, or of `bytes` where that is 0.
template <std::size_t size>
inline void copy_unit(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  if constexpr (size != 0)
    std::memcpy(to, from, size);
  else
    copy_short(to, from, bytes);
}

}  // namespace quadriga::message
