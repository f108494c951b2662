// SPDX-License-Identifier: BSD-3-Clause
// src/memory/outcome.h: what is asked of the memory, and what comes of it.
#pragma once

#include <quadriga/types.h>

#include <cstdint>
#include <variant>

#include "memory/directory.h"

namespace quadriga {

struct Need {
  TileId tile = no_tile;
  Access access = Access::read;
};

/// What has to happen before it is worth trying again.
enum class Awaits : std::uint8_t {
  nothing,  ///< It is done.
  room,     ///< Something that ends will make room.
  source,   ///< The content's producer, or another copy of it, has to end.
  buffer,   ///< The host has none for a tile; only what is in flight, if anything, may free one.
};

/// Why it can never be done.
enum class Refusal : std::uint8_t {
  unwritten,  ///< The content doesn't exist: no task has written it, or it was lost.
  home_lost,  ///< The device whose memory is home is gone.
};

using Outcome = std::variant<Awaits, Refusal>;

/// It was tried, and has to be tried again when this has happened.
constexpr bool awaits(const Outcome& outcome, Awaits what) noexcept {
  const Awaits* const found = std::get_if<Awaits>(&outcome);
  return found && *found == what;
}
constexpr bool is_done(const Outcome& outcome) noexcept { return awaits(outcome, Awaits::nothing); }

}  // namespace quadriga
