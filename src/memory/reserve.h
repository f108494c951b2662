// SPDX-License-Identifier: BSD-3-Clause
// src/memory/reserve.h: memory of a device that its arena can do without.
#pragma once

#include <cstddef>

namespace quadriga {

/// Allocated by itself, so that it can be freed by itself while the rest of the arena is in use.
struct Reserve {
  std::byte* base = nullptr;
  std::size_t bytes = 0;
};

}  // namespace quadriga
