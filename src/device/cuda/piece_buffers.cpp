// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/piece_buffers.cpp: slices of a copy, over the link and within the device.
#include "device/cuda/piece_buffers.h"

#include <algorithm>

#include "device/cuda/copies.h"
#include "device/cuda/cuda_check.h"
#include "device/operation.h"

namespace quadriga::cuda {

bool PieceBuffer::has(std::size_t bytes) {
  if (memory_) return bytes <= bytes_;
  if (full_) return false;
  void* memory = nullptr;
  full_ = cudaMalloc(&memory, bytes) != cudaSuccess;
  if (full_) cudaGetLastError();
  memory_ = static_cast<std::byte*>(memory);
  bytes_ = full_ ? 0 : bytes;
  return !full_;
}

void PieceBuffer::release(bool lost) noexcept {
  if (memory_ && !lost) cudaFree(memory_);
  memory_ = nullptr;
}

void PieceBuffer::queue(const Copy& copy, int ordinal, cudaStream_t stream, std::size_t most_bytes,
                        const Cross& cross) {
  const bool in = copy.from == host_space;
  const std::size_t bytes = memory_ ? bytes_ : most_bytes;  // later copies may be larger
  const std::size_t step = copy.width_bytes == 0 ? 0 : bytes / copy.width_bytes;
  if (step == 0 || !has(bytes)) return for_each_piece(copy, cross);
  Copy slice = copy;
  slice.pieces.reset();
  if (in)
    slice.target = memory_;
  else
    slice.source = memory_;
  (in ? slice.target_pitch : slice.source_pitch) = copy.width_bytes;
  for (std::size_t first = 0; first < copy.height; first += step) {
    slice.height = std::min(step, copy.height - first);
    if (in) {
      slice.source = copy.source + first * copy.source_pitch;
      cross(slice);
      queue_within(copy, first, slice.height, ordinal, stream);
    } else {
      slice.target = copy.target + first * copy.target_pitch;
      queue_within(copy, first, slice.height, ordinal, stream);
      cross(slice);
    }
  }
}

/// Between the buffer and the pieces: some runs, from `first` on.
void PieceBuffer::queue_within(const Copy& copy, std::size_t first, std::size_t runs, int ordinal,
                               cudaStream_t stream) const {
  const bool in = copy.from == host_space;
  std::byte* beside = memory_;
  for (const Piece& piece : *copy.pieces) {
    std::byte* const there = piece.memory + first * piece.pitch;
    Copy part;
    part.from = part.to = in ? copy.to : copy.from;
    part.source = in ? beside : there;
    part.source_pitch = in ? copy.width_bytes : piece.pitch;
    part.target = in ? there : beside;
    part.target_pitch = in ? piece.pitch : copy.width_bytes;
    part.width_bytes = piece.width_bytes;
    part.height = runs;
    beside += piece.width_bytes;
    check(queue_copy(part, ordinal, ordinal, stream), "a copy of a piece within a device");
  }
}

}  // namespace quadriga::cuda
