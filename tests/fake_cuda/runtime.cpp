// SPDX-License-Identifier: BSD-3-Clause
// tests/fake_cuda/runtime.cpp: the functions of CUDA that the backend calls, on the host: memory,
// streams, events and copies; so that its queues, parked operations and calls that wait are tested
// where there is no GPU. Kernels of a compiler's can't be launched here.
#include <cuda.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include "fake_cuda/streams.h"
#include "gpu/sleep.h"

namespace {

using quadriga::fake_cuda::current_device;
using quadriga::fake_cuda::faults;
using quadriga::fake_cuda::has_faulted;
using quadriga::fake_cuda::has_stopped;
using quadriga::fake_cuda::Memory;
using quadriga::fake_cuda::state;

std::atomic<std::uint64_t> event_records{0};
std::atomic<std::uint64_t> event_queries{0};

cudaError_t state_of(cudaStream_t stream) { return state(stream->device); }

// What waits, asks, or reads the host's memory at once can't be part of a graph.
bool is_refused_in_graph(cudaStream_t stream) {
  if (!stream->is_recording()) return false;
  stream->spoil_recording();
  return true;
}

// Runs of bytes; from pageable memory they are read at once, as CUDA does.
cudaError_t copy_runs(void* target, std::size_t target_pitch, const void* source,
                      std::size_t source_pitch, std::size_t width, std::size_t height,
                      cudaStream_t stream) {
  auto* const to = static_cast<std::byte*>(target);
  const auto* const from = static_cast<const std::byte*>(source);
  if (has_faulted(stream->device)) return state_of(stream);
  const bool is_pageable = Memory::instance().place_of(source) == Memory::pageable;
  if (is_pageable && is_refused_in_graph(stream)) return cudaErrorStreamCaptureUnsupported;
  if (faults().copies_synchronize && !stream->try_synchronize()) ++faults().stuck_copies;
  // Variants of tests copy back what they only read, at once with other readers: that
  // isn't written.
  const auto move = [=](const std::byte* first, std::size_t pitch) {
    for (std::size_t run = 0; run < height; ++run)
      if (std::memcmp(to + run * target_pitch, first + run * pitch, width) != 0)
        std::memcpy(to + run * target_pitch, first + run * pitch, width);
  };
  if (!is_pageable) {
    stream->push([=] { move(from, source_pitch); });
    return cudaSuccess;
  }
  std::vector<std::byte> kept(width * height);
  for (std::size_t run = 0; run < height; ++run)
    std::memcpy(kept.data() + run * width, from + run * source_pitch, width);
  stream->push([=, kept = std::move(kept)] { move(kept.data(), width); });
  return cudaSuccess;
}

bool is_refused() {
  const std::int64_t number = faults().allocations++;
  const std::int64_t refused = faults().refused_allocation;
  return refused >= 0 && (number == refused || (number > refused && faults().refuses_later));
}

CUresult wait_for_word(CUstream stream, CUdeviceptr word, cuuint64_t value, unsigned int) {
  if (has_faulted(stream->device)) return static_cast<CUresult>(state_of(stream));
  stream->push([stream, word = reinterpret_cast<std::uint64_t*>(word), value] {
    while (std::atomic_ref(*word).load(std::memory_order_acquire) < value &&
           !has_stopped(stream->device))
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  });
  return CUDA_SUCCESS;
}

CUresult write_word(CUstream stream, CUdeviceptr word, cuuint64_t value, unsigned int) {
  if (has_faulted(stream->device)) return static_cast<CUresult>(state_of(stream));
  stream->push([word = reinterpret_cast<std::uint64_t*>(word), value] {
    std::atomic_ref(*word).store(value, std::memory_order_release);
  });
  return CUDA_SUCCESS;
}

std::deque<CUevent_st>& events() {
  static auto* const all = new std::deque<CUevent_st>;
  return *all;
}
std::mutex events_mutex;  // Guards events().

}  // namespace

std::uint64_t quadriga::fake_cuda::recorded_events() { return event_records; }
std::uint64_t quadriga::fake_cuda::queried_events() { return event_queries; }

namespace {

cudaError_t allocate(void** memory, std::size_t bytes, bool is_pooled) {
  std::size_t free = 0;
  std::size_t total = 0;
  if (const cudaError_t error = cudaMemGetInfo(&free, &total); error != cudaSuccess) return error;
  if (is_refused() || bytes > free) return cudaErrorMemoryAllocation;
  *memory = quadriga::fake_cuda::allocate_shared(bytes);
  Memory::instance().add(*memory, bytes, current_device(), is_pooled);
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** memory, std::size_t bytes) { return allocate(memory, bytes, false); }
cudaError_t cudaFree(void* memory) {
  const int place = Memory::instance().place_of(memory);
  if (place >= 0 && has_faulted(place)) return state(place);
  if (Memory::instance().remove(memory) && !quadriga::fake_cuda::free_shared(memory))
    std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t) {
  return allocate(memory, bytes, true);
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t) { return cudaFree(memory); }
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) {
  return *pool = nullptr, cudaSuccess;
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr which, void* value) {
  // Others gave back half of what they had.
  const std::uint64_t bytes = which == cudaMemPoolAttrReservedMemCurrent ? 2 << 20 : 1 << 20;
  return std::memcpy(value, &bytes, sizeof bytes), cudaSuccess;
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, std::size_t) {
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned int) {
  if (state() != cudaSuccess) return state();
  if (faults().refused_host_allocations > 0) {
    --faults().refused_host_allocations;
    return cudaErrorMemoryAllocation;
  }
  if (is_refused()) return cudaErrorMemoryAllocation;
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  Memory::instance().add(*memory, bytes, Memory::pinned);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) { return cudaFree(memory), state(); }
cudaError_t cudaHostRegister(void* memory, std::size_t bytes, unsigned int) {
  if (state() != cudaSuccess) return state();
  if (Memory::instance().place_of(memory) != Memory::pageable)
    return cudaErrorHostMemoryAlreadyRegistered;
  return Memory::instance().add(memory, bytes, Memory::pinned), cudaSuccess;
}
cudaError_t cudaHostUnregister(void* memory) {
  return Memory::instance().remove(memory) ? cudaSuccess : cudaErrorHostMemoryNotRegistered;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* memory) {
  if (state() != cudaSuccess) return state();
  const int place = Memory::instance().place_of(memory);
  attributes->type = place >= 0                  ? cudaMemoryTypeDevice
                     : place == Memory::pageable ? cudaMemoryTypeUnregistered
                                                 : cudaMemoryTypeHost;
  attributes->device = place;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int, int) {
  static std::atomic<std::uint64_t> made{0};
  if (state() != cudaSuccess) return state();
  return *stream = new CUstream_st(current_device(), ++made), cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) { return delete stream, cudaSuccess; }
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (is_refused_in_graph(stream)) return cudaErrorStreamCaptureUnsupported;
  const cudaError_t state = state_of(stream);
  return state == cudaSuccess && !stream->is_idle() ? cudaErrorNotReady : state;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (stream == cudaStreamPerThread) return state();
  if (is_refused_in_graph(stream)) return cudaErrorStreamCaptureUnsupported;
  return stream->synchronize(), state_of(stream);
}
cudaError_t cudaDeviceSynchronize() {
  while (has_stopped(current_device()) && state() == cudaSuccess)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return state();
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int) {
  if (state() != cudaSuccess) return state();
  const std::lock_guard lock(events_mutex);
  return *event = &events().emplace_back(current_device()), cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (event->device != stream->device) return cudaErrorInvalidResourceHandle;
  if (has_faulted(stream->device)) return state_of(stream);
  stream->record(event);
  if (stream->is_recording()) return cudaSuccess;
  ++event_records;
  stream->push([event, record = ++event->recorded] {
    std::uint64_t before = event->reached;
    while (before < record && !event->reached.compare_exchange_weak(before, record)) {
    }
    event->stir();
  });
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  ++event_queries;
  if (has_faulted(event->device)) return state(event->device);
  if (has_stopped(event->device)) return cudaErrorNotReady;
  return event->reached.load() >= event->recorded.load() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int) {
  if (has_faulted(stream->device)) return state_of(stream);
  if (has_faulted(event->device)) return state(event->device);
  if (faults().granted_waits > 0) {
    --faults().granted_waits;
  } else if (faults().refused_waits > 0) {
    --faults().refused_waits;
    return cudaErrorMemoryAllocation;
  }
  if (stream->is_recording() || (event->was_in_graph && event->graph.lock())) {
    if (stream->wait_in_recording(event)) return cudaSuccess;
    return stream->spoil_recording(), cudaErrorStreamCaptureIsolation;
  }
  stream->push([stream, event, record = event->recorded.load()] {
    while (true) {
      const std::uint32_t before = event->stirred;
      if (event->reached >= record || has_stopped(stream->device) || has_stopped(event->device))
        return;
      event->stirred.wait(before);
    }
  });
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  if (has_faulted(stream->device)) return state_of(stream);
  return stream->push([=] { function(data); }), cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* target, const void* source, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  return copy_runs(target, bytes, source, bytes, bytes, 1, stream);
}
cudaError_t cudaMemcpy2DAsync(void* target, std::size_t target_pitch, const void* source,
                              std::size_t source_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind, cudaStream_t stream) {
  return copy_runs(target, target_pitch, source, source_pitch, width, height, stream);
}
cudaError_t cudaMemcpyPeerAsync(void* target, int, const void* source, int, std::size_t bytes,
                                cudaStream_t stream) {
  return copy_runs(target, bytes, source, bytes, bytes, 1, stream);
}
cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* copy, cudaStream_t stream) {
  return copy_runs(copy->dstPtr.ptr, copy->dstPtr.pitch, copy->srcPtr.ptr, copy->srcPtr.pitch,
                   copy->extent.width, copy->extent.height, stream);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned int,
                                             unsigned long long, cudaDriverEntryPointQueryResult*) {
  const std::string_view wanted = name;
  *function = wanted == "cuStreamWaitValue64"    ? reinterpret_cast<void*>(&wait_for_word)
              : wanted == "cuStreamWriteValue64" ? reinterpret_cast<void*>(&write_word)
                                                 : quadriga::fake_cuda::find_sharing_call(wanted);
  return *function != nullptr ? cudaSuccess : cudaErrorSymbolNotFound;
}

cudaError_t cudaLibraryLoadData(cudaLibrary_t*, const void*, cudaJitOption*, void**, unsigned int,
                                cudaLibraryOption*, void**, unsigned int) {
  return cudaErrorNotSupported;
}
cudaError_t cudaLibraryUnload(cudaLibrary_t) { return cudaSuccess; }
cudaError_t cudaLibraryGetKernel(cudaKernel_t*, cudaLibrary_t, const char*) {
  return cudaErrorNotSupported;
}
cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t, cudaFuncAttribute, int, int) {
  return cudaErrorNotSupported;
}
cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, std::size_t, cudaStream_t) {
  return cudaErrorNotSupported;
}

}  // extern "C"

namespace quadriga {

void queue_sleep(void* stream, int milliseconds) {
  static_cast<cudaStream_t>(stream)->push(
      [milliseconds] { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); });
}

std::size_t bytes_for_milliseconds() { return std::size_t{16} << 20; }

void queue_fault(void* stream) {
  auto* const native = static_cast<cudaStream_t>(stream);
  native->push([native] { fake_cuda::fault(*native); });
}

void fake_cuda::stir_events() {
  const std::lock_guard lock(events_mutex);
  for (CUevent_st& event : events()) event.stir();
}

}  // namespace quadriga
