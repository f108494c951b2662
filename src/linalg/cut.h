// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/cut.h: a dimension cut into tiles of one length, the last one perhaps shorter.
#pragma once

#include <algorithm>
#include <cstdint>

namespace quadriga::linalg {

struct Cut {
  std::int64_t size = 0;
  std::int64_t tile = 1;

  std::int64_t count() const noexcept { return (size + tile - 1) / tile; }
  std::int64_t first(std::int64_t index) const noexcept { return index * tile; }
  std::int64_t length(std::int64_t index) const noexcept {
    return std::min(tile, size - index * tile);
  }
};

}  // namespace quadriga::linalg
