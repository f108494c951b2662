// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/cuda_memory.cpp: cudaMalloc, or the same from pools; both before they return.
#include "device/cuda/cuda_memory.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

#include "device/cuda/cuda_check.h"

namespace quadriga::cuda {
namespace {

cudaMemPool_t pool_of(int ordinal) {
  cudaMemPool_t pool = nullptr;
  check(cudaDeviceGetDefaultMemPool(&pool, ordinal), "asking for a device's memory pool");
  return pool;
}

std::size_t attribute(cudaMemPool_t pool, cudaMemPoolAttr which) {
  std::uint64_t value = 0;
  check(cudaMemPoolGetAttribute(pool, which, &value), "asking what a memory pool holds");
  return value;
}

// In the order of this stream, which nothing else is queued on.
const cudaStream_t own_stream = cudaStreamPerThread;

cudaError_t allocate_now(void** block, std::size_t bytes, bool pooled) {
  if (!pooled) return cudaMalloc(block, bytes);
  const cudaError_t error = cudaMallocAsync(block, bytes, own_stream);
  return error == cudaSuccess ? cudaStreamSynchronize(own_stream) : error;
}

void free_now(int ordinal, std::byte* block, bool pooled) noexcept {
  if (!pooled) {
    cudaFree(block);
    return;
  }
  int current = 0;
  cudaGetDevice(&current);
  cudaSetDevice(ordinal);
  if (cudaFreeAsync(block, own_stream) == cudaSuccess) cudaStreamSynchronize(own_stream);
  cudaSetDevice(current);
}

}  // namespace

std::size_t free_bytes(int ordinal, bool pooled) {
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "asking for a device's memory");
  if (!pooled) return free;
  const cudaMemPool_t pool = pool_of(ordinal);
  return free + attribute(pool, cudaMemPoolAttrReservedMemCurrent) -
         attribute(pool, cudaMemPoolAttrUsedMemCurrent);
}

CudaMemory::CudaMemory(std::vector<int> ordinals, bool pooled)
    : devices_(ordinals.size()), pooled_(pooled) {
  for (std::size_t i = 0; i < ordinals.size(); ++i) devices_[i].ordinal = ordinals[i];
  if (pooled_) share_pools();
}

// Peers can't read what is in a pool unless the pool says so, whatever else was enabled.
void CudaMemory::share_pools() const {
  for (const Device& owner : devices_) {
    for (const Device& reader : devices_) {
      int can = 0;
      if (owner.ordinal < 0 || reader.ordinal < 0 || owner.ordinal == reader.ordinal) continue;
      check(cudaDeviceCanAccessPeer(&can, reader.ordinal, owner.ordinal), "asking for peer access");
      if (can == 0) continue;
      cudaMemAccessDesc access{};
      access.location.type = cudaMemLocationTypeDevice;
      access.location.id = reader.ordinal;
      access.flags = cudaMemAccessFlagsProtReadWrite;
      check(cudaMemPoolSetAccess(pool_of(owner.ordinal), &access, 1), "sharing a memory pool");
    }
  }
}

std::byte* CudaMemory::allocate(std::size_t device, std::size_t bytes) {
  Device& where = devices_[device];
  const DeviceGuard guard(where.ordinal);
  void* block = nullptr;
  const cudaError_t error = allocate_now(&block, std::max<std::size_t>(bytes, 1), pooled_);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return nullptr;
  }
  check(error, "allocating device memory");
  const std::lock_guard lock(mutex_);
  where.blocks[static_cast<std::byte*>(block)] = bytes;
  where.used += bytes;
  return static_cast<std::byte*>(block);
}

void CudaMemory::deallocate(std::size_t device, std::byte* block, bool lost) noexcept {
  Device& where = devices_[device];
  {
    const std::lock_guard lock(mutex_);
    const auto found = where.blocks.find(block);
    if (found == where.blocks.end()) return;
    where.used -= found->second;
    where.blocks.erase(found);
  }
  if (!lost) free_now(where.ordinal, block, pooled_);
}

std::size_t CudaMemory::used(std::size_t device) const noexcept {
  const std::lock_guard lock(mutex_);
  return devices_[device].used;
}

void CudaMemory::deallocate_all(std::size_t device, bool lost) noexcept {
  while (!devices_[device].blocks.empty())
    deallocate(device, devices_[device].blocks.begin()->first, lost);
}

}  // namespace quadriga::cuda
