// SPDX-License-Identifier: BSD-3-Clause
// tests/fake_cuda/sharing.cpp: memory of devices that other processes open, with the traps of
// CUDA's handles: a handle stands for a whole allocation, a process can't open its own, a second
// opening gives the same address and is counted, what was freed can't be opened, pools never; and
// what is opened while an earlier allocation of its address is open shows that one.
#include <cuda.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>

#include "base/peer_file.h"
#include "device/emulated_memory.h"
#include "fake_cuda/streams.h"

namespace {

using quadriga::EmulatedMemory;
using quadriga::fake_cuda::Memory;
using quadriga::fake_cuda::state;

// As much as no test uses; the file has no more than what is written.
constexpr std::size_t most_bytes = std::size_t{64} << 30;
constexpr std::size_t most_living = 1 << 16;

// One block of all devices, and beside it a file that tells which allocations live.
class Arena {
 public:
  static Arena& instance() {
    static auto* const all = new Arena;
    return *all;
  }
  void* allocate(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    return memory_.allocate(bytes);
  }
  bool free(void* memory) {
    const std::lock_guard lock(mutex_);
    if (!memory_.contains(memory)) return false;
    const std::uint64_t id = memory_.share(memory).handle.id;
    living_[id % most_living].store(0);
    memory_.deallocate(static_cast<std::byte*>(memory));
    return true;
  }
  quadriga::MemoryHandle share(const void* memory) {
    const std::lock_guard lock(mutex_);
    const quadriga::MemoryHandle handle = memory_.share(memory).handle;
    living_[handle.id % most_living].store(handle.id);
    return handle;
  }
  int living() const noexcept { return file_; }

 private:
  Arena() : memory_(most_bytes, EmulatedMemory::Use::shared) {
    constexpr std::size_t bytes = most_living * sizeof(std::atomic<std::uint64_t>);
    file_ = memfd_create("fake_cuda", MFD_CLOEXEC);
    if (ftruncate(file_, bytes) != 0) std::abort();
    living_ = static_cast<std::atomic<std::uint64_t>*>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0));
  }
  std::mutex mutex_;
  EmulatedMemory memory_;
  int file_ = -1;
  std::atomic<std::uint64_t>* living_ = nullptr;
};

// What a handle is inside: nobody but these functions looks.
struct Handle {
  std::int32_t process = 0;
  std::int32_t file = 0;
  std::int32_t living = 0;
  std::int32_t device = 0;
  std::uint64_t id = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  // As were asked for.
  auto operator<=>(const Handle&) const = default;
};
static_assert(sizeof(Handle) <= sizeof(cudaIpcMemHandle_t));

struct Opened {
  std::byte* memory = nullptr;
  int count = 0;
};
std::mutex opened_mutex;  // Guards opened().
std::map<Handle, Opened>& opened() {
  static auto* const all = new std::map<Handle, Opened>;
  return *all;
}

bool lives(int process, const Handle& handle) {
  const int file = quadriga::file_of_process(process, handle.living);
  std::uint64_t id = 0;
  const auto at = static_cast<off_t>(handle.id % most_living * sizeof id);
  const bool is_read = file >= 0 && pread(file, &id, sizeof id, at) == sizeof id;
  if (file >= 0) close(file);
  return is_read && id == handle.id;
}

std::byte* map(const Handle& handle) {
  const int process = static_cast<int>(syscall(SYS_pidfd_open, handle.process, 0));
  if (process < 0) return nullptr;
  const int file = lives(process, handle) ? quadriga::file_of_process(process, handle.file) : -1;
  close(process);
  if (file < 0) return nullptr;
  void* const mapped = mmap(nullptr, handle.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file,
                            static_cast<off_t>(handle.offset));
  close(file);
  return mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
}

// Whether an allocation that was there before is still open: CUDA gives its mapping then.
bool is_taken(const Handle& handle) {
  for (const auto& [other, _] : opened())
    if (other.process == handle.process && other.id != handle.id &&
        other.offset < handle.offset + handle.bytes && handle.offset < other.offset + other.bytes)
      return true;
  return false;
}

// What stands for memory that its owner has freed: nothing that anybody writes later.
std::byte* stale(std::size_t bytes) {
  return static_cast<std::byte*>(
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

CUresult attribute_of(void* data, CUpointer_attribute which, CUdeviceptr at) {
  const Memory::Found found = Memory::instance().find(reinterpret_cast<const void*>(at));
  if (found.bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (which == CU_POINTER_ATTRIBUTE_BUFFER_ID) {
    std::memcpy(data, &found.id, sizeof found.id);
  } else if (which == CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE) {
    const std::uintptr_t pool = found.is_pooled ? 1 : 0;
    std::memcpy(data, &pool, sizeof pool);
  } else {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult range_of(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr at) {
  const Memory::Found found = Memory::instance().find(reinterpret_cast<const void*>(at));
  if (found.bytes == 0) return CUDA_ERROR_NOT_FOUND;
  *base = reinterpret_cast<CUdeviceptr>(found.base);
  *bytes = found.bytes;
  return CUDA_SUCCESS;
}

}  // namespace

namespace quadriga::fake_cuda {

void* allocate_shared(std::size_t bytes) { return Arena::instance().allocate(bytes); }
bool free_shared(void* memory) { return Arena::instance().free(memory); }

void* find_sharing_call(std::string_view name) {
  if (name == "cuPointerGetAttribute") return reinterpret_cast<void*>(&attribute_of);
  if (name == "cuMemGetAddressRange") return reinterpret_cast<void*>(&range_of);
  return nullptr;
}

int opened_handles() {
  const std::lock_guard lock(opened_mutex);
  int count = 0;
  for (const auto& [_, each] : opened()) count += each.count;
  return count;
}

}  // namespace quadriga::fake_cuda

extern "C" {

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* made, void* memory) {
  if (state() != cudaSuccess) return state();
  const Memory::Found found = Memory::instance().find(memory);
  const int place = Memory::instance().place_of(memory);
  if (found.bytes == 0 || found.is_pooled || place < 0) return cudaErrorInvalidValue;
  const quadriga::MemoryHandle shared = Arena::instance().share(found.base);
  if (shared.kind == quadriga::HandleKind::none) return cudaErrorInvalidValue;  // It was opened.
  const Handle handle{getpid(),   shared.descriptor, Arena::instance().living(),
                      place,      shared.id,         shared.offset,
                      found.bytes};
  std::memset(made, 0, sizeof *made);
  std::memcpy(made, &handle, sizeof handle);
  return cudaSuccess;
}

cudaError_t cudaIpcOpenMemHandle(void** memory, cudaIpcMemHandle_t native, unsigned int flags) {
  if (state() != cudaSuccess) return state();
  if (flags != cudaIpcMemLazyEnablePeerAccess) return cudaErrorInvalidValue;
  Handle handle;
  std::memcpy(static_cast<void*>(&handle), &native, sizeof handle);
  if (handle.process == getpid()) return cudaErrorDeviceUninitialized;
  const std::lock_guard lock(opened_mutex);
  const bool is_old = is_taken(handle);
  Opened& entry = opened()[handle];
  if (entry.count == 0) {
    entry.memory = is_old ? stale(handle.bytes) : map(handle);
    if (entry.memory == nullptr) return opened().erase(handle), cudaErrorMapBufferObjectFailed;
    Memory::instance().add(entry.memory, handle.bytes, handle.device);
  }
  ++entry.count;
  return *memory = entry.memory, cudaSuccess;
}

cudaError_t cudaIpcCloseMemHandle(void* memory) {
  if (state() != cudaSuccess) return state();
  const std::lock_guard lock(opened_mutex);
  for (auto& [handle, entry] : opened()) {
    if (entry.memory != memory) continue;
    if (--entry.count > 0) return cudaSuccess;
    Memory::instance().remove(memory);
    munmap(memory, handle.bytes);
    opened().erase(Handle(handle));
    return cudaSuccess;
  }
  return cudaErrorInvalidValue;
}

}  // extern "C"
