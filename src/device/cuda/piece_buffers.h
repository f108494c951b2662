// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/piece_buffers.h: copies that are in pieces on the device pass through a buffer
// there: a link is fast only with long runs, a device's own memory with runs of any length.
//
// Invariants
//   1. Only its stream uses a stream's buffer, in order: nobody else waits for it.
//   2. A thread uses a device's streams while it holds the device's mutex (cuda_backend.cpp).
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>

#include "device/backend.h"

namespace quadriga::cuda {

class PieceBuffer {
 public:
  /// Queues a copy over the link, of which neither end lies in pieces.
  using Cross = std::function<void(const Copy&)>;

  PieceBuffer() = default;
  PieceBuffer(const PieceBuffer&) = delete;
  PieceBuffer& operator=(const PieceBuffer&) = delete;

  /// Queues a copy in pieces on a stream of a device, which is current: by way of the buffer, of
  /// at most so many bytes, or each piece alone where the device has no memory for one.
  /// Errors:  what `cross` throws; as check().
  void queue(const Copy& copy, int ordinal, cudaStream_t stream, std::size_t most_bytes,
             const Cross& cross);
  /// Nothing queued uses it any more. A device that was lost takes its memory along.
  void release(bool lost) noexcept;

 private:
  bool has(std::size_t bytes);
  void queue_within(const Copy& copy, std::size_t first, std::size_t runs, int ordinal,
                    cudaStream_t stream) const;

  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
  bool full_ = false;  // The device had no memory for it.
};

}  // namespace quadriga::cuda
