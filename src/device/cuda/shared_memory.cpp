// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/shared_memory.cpp: IPC handles for what cudaMalloc gave, descriptors for what was
// mapped; memory of pools has neither.
#include "device/cuda/shared_memory.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <quadriga/error.h>
#include <unistd.h>

#include <cstring>

#include "device/cuda/cuda_check.h"
#include "device/cuda/driver_calls.h"

namespace quadriga::cuda {
namespace {

static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(MemoryHandle::key));

CUdeviceptr number(const void* address) { return reinterpret_cast<CUdeviceptr>(address); }

std::string text_of(int error) {
  const auto code = static_cast<cudaError_t>(error);
  return fmt::format("{} ({})", cudaGetErrorString(code), cudaGetErrorName(code));
}

std::uint64_t id_at(const void* memory) {
  const MemoryCalls& driver = MemoryCalls::get();
  unsigned long long id = 0;
  if (driver.attribute == nullptr ||
      driver.attribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, number(memory)) != CUDA_SUCCESS)
    return 0;
  return id;
}

bool is_pooled(const void* memory) {
  CUmemoryPool pool = nullptr;
  const MemoryCalls& driver = MemoryCalls::get();
  return driver.attribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, number(memory)) ==
             CUDA_SUCCESS &&
         pool != nullptr;
}

// A descriptor of a mapping's memory; -1 if it was made for no other process.
int export_mapping(const std::byte* base) {
  const MemoryCalls& driver = MemoryCalls::get();
  CUmemGenericAllocationHandle handle = 0;
  if (!driver.has_mappings() ||
      driver.retain(&handle, const_cast<std::byte*>(base)) != CUDA_SUCCESS)
    return -1;
  int descriptor = -1;
  const CUresult error =
      driver.export_handle(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  driver.release(handle);
  return error == CUDA_SUCCESS ? descriptor : -1;
}

// Maps the memory of a descriptor; nothing stays behind if that fails.
std::byte* map_file(int ordinal, std::size_t bytes, int descriptor) {
  const MemoryCalls& driver = MemoryCalls::get();
  if (!driver.has_mappings()) fail(Errc::unavailable, "this driver maps no memory of descriptors");
  CUmemGenericAllocationHandle handle = 0;
  const auto refuse = [](const char* what, CUresult error) {
    fail(Errc::unavailable, fmt::format("{}: {}", what, text_of(error)));
  };
  CUresult error =
      driver.import_handle(&handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor)),
                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  if (error != CUDA_SUCCESS) refuse("cuMemImportFromShareableHandle", error);
  CUdeviceptr place = 0;
  error = driver.reserve(&place, bytes, 0, 0, 0);
  if (error == CUDA_SUCCESS) {
    error = driver.map(place, bytes, 0, handle, 0);
    if (error == CUDA_SUCCESS) {
      CUmemAccessDesc access{};
      access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
      access.location.id = ordinal;
      access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      error = driver.set_access(place, bytes, &access, 1);
      if (error != CUDA_SUCCESS) driver.unmap(place, bytes);
    }
    if (error != CUDA_SUCCESS) driver.unreserve(place, bytes);
  }
  driver.release(handle);  // The mapping holds the memory.
  if (error != CUDA_SUCCESS) refuse("mapping another process's memory", error);
  return reinterpret_cast<std::byte*>(place);
}

std::byte* open_ipc(const MemoryHandle& handle) {
  cudaIpcMemHandle_t native{};
  std::memcpy(&native, handle.key.data(), sizeof native);
  void* opened = nullptr;
  const cudaError_t error = cudaIpcOpenMemHandle(&opened, native, cudaIpcMemLazyEnablePeerAccess);
  if (error != cudaSuccess) {
    cudaGetLastError();
    fail(Errc::unavailable, "cudaIpcOpenMemHandle: " + text_of(error));
  }
  return static_cast<std::byte*>(opened);
}

}  // namespace

SharedMemory::~SharedMemory() {
  for (auto& [mapped, opened] : opened_)
    while (opened.count-- > 0) close_one(mapped, opened);
  for (const auto& [_, handle] : shared_)
    if (handle.descriptor >= 0) ::close(handle.descriptor);
}

std::uint64_t SharedMemory::buffer_id(int ordinal, const void* memory) {
  const DeviceGuard guard(ordinal);
  return id_at(memory);
}

MemoryExport SharedMemory::share(int ordinal, const void* memory) {
  const DeviceGuard guard(ordinal);
  const MemoryCalls& driver = MemoryCalls::get();
  if (!driver.has_ranges()) return MemoryExport::refused("this driver doesn't tell allocations");
  const std::uint64_t id = id_at(memory);
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  if (id == 0 || driver.range(&base, &bytes, number(memory)) != CUDA_SUCCESS)
    return MemoryExport::refused("it lies in no allocation that the driver knows");
  const std::lock_guard lock(mutex_);
  MemoryExport made;
  made.handle = shared(ordinal, reinterpret_cast<const std::byte*>(base), bytes, id);
  made.offset = number(memory) - base;
  if (made.handle.kind == HandleKind::none)
    made.refusal = is_pooled(memory) ? "it lies in a memory pool (cudaMallocAsync), which the "
                                       "driver opens to no other process"
                                     : "the driver opens it to no other process";
  return made;
}

// Refusals are kept, too.
MemoryHandle SharedMemory::shared(int ordinal, const std::byte* base, std::size_t bytes,
                                  std::uint64_t id) {
  MemoryHandle& kept = shared_[base];
  if (kept.id == id && kept.bytes == bytes) return kept;
  if (kept.descriptor >= 0) ::close(kept.descriptor);
  kept = {};
  kept.id = id;
  kept.bytes = bytes;
  kept.device = static_cast<std::uint16_t>(ordinal);
  cudaIpcMemHandle_t native{};
  const cudaError_t error = cudaIpcGetMemHandle(&native, const_cast<std::byte*>(base));
  if (error == cudaSuccess) {
    kept.kind = HandleKind::cuda_ipc;
    std::memcpy(kept.key.data(), &native, sizeof native);
    return kept;
  }
  cudaGetLastError();
  kept.descriptor = export_mapping(base);
  if (kept.descriptor >= 0) kept.kind = HandleKind::cuda_file;
  return kept;
}

std::byte* SharedMemory::open(int ordinal, const MemoryHandle& handle, int descriptor) {
  const DeviceGuard guard(ordinal);
  const bool is_file = handle.kind == HandleKind::cuda_file;
  if (!is_file && handle.kind != HandleKind::cuda_ipc)
    fail(Errc::unavailable, "the address is not in the memory of a CUDA device");
  const std::lock_guard lock(mutex_);
  std::byte* const mapped =
      is_file ? map_file(ordinal, handle.bytes, descriptor) : open_ipc(handle);
  Opened& opened = opened_[mapped];
  opened = {handle.kind, handle.bytes, ordinal, opened.count + 1};
  // What maps a descriptor refuses more bytes than there are.
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  const CUresult error =
      is_file ? CUDA_SUCCESS : MemoryCalls::get().range(&base, &bytes, number(mapped));
  if (is_file || (error == CUDA_SUCCESS && bytes >= handle.bytes)) return mapped;
  const Opened wrong = opened;
  if (--opened.count == 0) opened_.erase(mapped);
  close_one(mapped, wrong);
  fail(Errc::invalid_argument,
       fmt::format("the other process's allocation has {} bytes, not {}", bytes, handle.bytes));
}

void SharedMemory::close(int ordinal, std::byte* mapped) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = opened_.find(mapped);
  if (found == opened_.end() || found->second.ordinal != ordinal) return;
  const Opened opened = found->second;
  if (--found->second.count == 0) opened_.erase(found);
  close_one(mapped, opened);
}

// After a fault there is nothing left to close: what is refused is ignored.
void SharedMemory::close_one(std::byte* mapped, const Opened& opened) noexcept {
  int before = 0;
  cudaGetDevice(&before);
  cudaSetDevice(opened.ordinal);
  if (opened.kind == HandleKind::cuda_ipc) {
    cudaIpcCloseMemHandle(mapped);
  } else {
    const MemoryCalls& driver = MemoryCalls::get();
    driver.unmap(number(mapped), opened.bytes);
    driver.unreserve(number(mapped), opened.bytes);
  }
  cudaSetDevice(before);
  cudaGetLastError();
}

}  // namespace quadriga::cuda
