// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/tile_memory.cpp: tiles from the heap or from pages of a file.
#include "sparse/tile_memory.h"

#include <quadriga/error.h>

#include <limits>

namespace quadriga::sparse {

void TileDeleter::operator()(std::byte* tile) const noexcept {
  if (!file) {
    delete[] tile;
    return;
  }
  const std::lock_guard lock(file->mutex_);
  file->file_->deallocate(tile, bytes);
}

TileMemory::TileMemory(const std::string& file) {
  // How much fits is the disk's to say.
  if (!file.empty()) file_.emplace(std::numeric_limits<std::size_t>::max() / 2, file);
}

StoredTile TileMemory::allocate(std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  if (!file_) return StoredTile(new std::byte[size]);
  if (size == 0) return {};
  const std::lock_guard lock(mutex_);
  std::byte* const tile = file_->allocate(size);
  if (!tile) fail(Errc::too_large, "parts of a sparse matrix don't fit: " + file_->refusal());
  return StoredTile(tile, {this, size});
}

}  // namespace quadriga::sparse
