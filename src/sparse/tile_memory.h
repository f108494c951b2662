// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/tile_memory.h: where stored parts lie on the host: in memory, or in a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "memory/spill.h"

namespace quadriga::sparse {

class TileMemory;

/// Frees a tile where it was allocated.
struct TileDeleter {
  TileMemory* file = nullptr;  ///< Null: in memory.
  std::size_t bytes = 0;
  void operator()(std::byte* tile) const noexcept;
};

/// Bytes of a part; its TileMemory must outlive it.
using StoredTile = std::unique_ptr<std::byte[], TileDeleter>;

/// Allocates from the heap, or maps pages of a file, which the system can write back and take again
/// where memory is short. Any thread.
class TileMemory {
 public:
  /// `file` is made, and removed in the end; empty: in memory. Errors: io naming the file.
  explicit TileMemory(const std::string& file);
  TileMemory(const TileMemory&) = delete;
  TileMemory& operator=(const TileMemory&) = delete;

  /// Errors: too_large naming the file, if its disk is full.
  StoredTile allocate(std::int64_t bytes);

 private:
  friend struct TileDeleter;
  std::mutex mutex_;  ///< Guards the file.
  std::optional<Spill> file_;
};

}  // namespace quadriga::sparse
