// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/cuda_memory.h: memory of CUDA devices, of their own or from their pools.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

namespace quadriga::cuda {

/// Bytes that a device could give now: those that nobody has, and with `pooled` those that its
/// default pool keeps and nobody uses. The device is current.
std::size_t free_bytes(int ordinal, bool pooled);

/// What was allocated on devices, each by its ordinal. Any thread.
class CudaMemory {
 public:
  /// Pooled: from the devices' default pools, which PyTorch (backend:cudaMallocAsync) and CuPy
  /// (MemoryAsyncPool) use, so that what they gave back and keep for later is used, too. Ordinals
  /// below 0 are no CUDA devices.
  CudaMemory(std::vector<int> ordinals, bool pooled);

  /// Null when the device is full.
  std::byte* allocate(std::size_t device, std::size_t bytes);
  /// What isn't ours is left alone. A device that was lost is only forgotten.
  void deallocate(std::size_t device, std::byte* block, bool lost) noexcept;
  /// Everything. What is queued on the device has ended.
  void deallocate_all(std::size_t device, bool lost) noexcept;
  bool pooled() const noexcept { return pooled_; }
  std::size_t used(std::size_t device) const noexcept;

 private:
  struct Device {
    int ordinal = -1;
    std::size_t used = 0;
    std::map<std::byte*, std::size_t> blocks;
  };
  void share_pools() const;

  std::vector<Device> devices_;
  bool pooled_;
  mutable std::mutex mutex_;  ///< Guards what devices have; held for none of the runtime's calls.
};

}  // namespace quadriga::cuda
