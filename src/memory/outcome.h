// SPDX-License-Identifier: BSD-3-Clause
// src/memory/outcome.h: what is asked of the memory, and what comes of it.
#pragma once

#include <quadriga/types.h>

#include <cstdint>

#include "memory/directory.h"

namespace quadriga {

struct Need {
  TileId tile = no_tile;
  Access access = Access::read;
};

enum class Outcome : std::uint8_t {
  done,
  no_room,    ///< Room must be made first: something that ends will make it.
  no_source,  ///< The content can't be copied before its producer, or another copy, has ended.
  unwritten,  ///< The content doesn't exist: no task has written it, or it was lost.
  no_buffer,  ///< The host has none for a tile; only what is in flight, if anything, may free one.
  home_lost,  ///< The device whose memory is home is gone.
};

}  // namespace quadriga
