// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/stream_gate.h: words of pinned memory through which streams and host threads wait
// for each other.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>

namespace quadriga::cuda {

/// Open once a word that only grows has reached a value; a gate without a word is always open.
struct Gate {
  std::uint64_t* word = nullptr;  ///< In pinned memory.
  std::uint64_t value = 0;

  explicit operator bool() const noexcept { return word != nullptr; }
  bool is_open() const noexcept {
    return !word || std::atomic_ref(*word).load(std::memory_order_acquire) >= value;
  }
  /// By a thread of the host: opens it to all who wait for this value or a smaller one.
  void open() const noexcept { std::atomic_ref(*word).store(value, std::memory_order_release); }
};

/// Makes a stream wait until a gate is open. Errors: as check().
void queue_wait(cudaStream_t stream, Gate gate);
/// The same, and the error is returned.
cudaError_t try_queue_wait(cudaStream_t stream, Gate gate) noexcept;
/// Opens a gate when the stream gets there and what it wrote before can be seen by the host.
void queue_open(cudaStream_t stream, Gate gate);
/// The same, and the error is returned.
cudaError_t try_queue_open(cudaStream_t stream, Gate gate) noexcept;

}  // namespace quadriga::cuda
