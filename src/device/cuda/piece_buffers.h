// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/piece_buffers.h: copies whose end on the device lies in pieces, by way of a
// buffer there: a link is quick only with long runs, a device's own memory is with any.
//
// Invariants
//   1. A stream's buffer is used by that stream only, in its order: nobody else waits for it.
//   2. Streams of a device are used by who has the device's mutex (cuda_backend.cpp).
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
