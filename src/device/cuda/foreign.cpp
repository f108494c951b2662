// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/foreign.cpp: asks the runtime where memory is, and waits for streams of others.
#include "device/cuda/foreign.h"

#include <cuda_runtime_api.h>

#include "device/cuda/cuda_check.h"
#include "device/cuda_reading.h"

namespace quadriga::cuda {
namespace {

/// The numbers 1 and 2 are those of the runtime's own handles.
cudaStream_t handle_of(std::uintptr_t stream) { return reinterpret_cast<cudaStream_t>(stream); }

class RecordedEvent final : public ForeignEvent {
 public:
  RecordedEvent() {
    check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "creating an event");
  }
  /// Also while streams wait for it: they do so all the same.
  ~RecordedEvent() override { static_cast<void>(cudaEventDestroy(event_)); }

  cudaError_t record(cudaStream_t stream) { return cudaEventRecord(event_, stream); }
  bool is_reached() const override {
    const cudaError_t state = cudaEventQuery(event_);
    if (state == cudaErrorNotReady) return false;
    check(state, "asking for the caller's stream");
    return true;
  }
  void queue_wait(void* stream) const override {
    check(cudaStreamWaitEvent(static_cast<cudaStream_t>(stream), event_, 0),
          "waiting for the caller's stream");
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace

int ordinal_of(const void* memory) {
  cudaPointerAttributes attributes{};
  check(cudaPointerGetAttributes(&attributes, memory), "asking where memory is");
  const bool is_there =
      attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged;
  return is_there ? attributes.device : -1;
}

void synchronize(int ordinal, std::uintptr_t stream) {
  const DeviceGuard guard(ordinal);
  if (stream == 0)
    check(cudaDeviceSynchronize(), "waiting for a device's streams");
  else
    check(cudaStreamSynchronize(handle_of(stream)), "waiting for the caller's stream");
}

std::unique_ptr<ForeignEvent> mark(int ordinal, std::uintptr_t stream) {
  if (stream == 0) {
    synchronize(ordinal, stream);
    return nullptr;
  }
  const DeviceGuard guard(ordinal);
  auto event = std::make_unique<RecordedEvent>();
  const cudaError_t error = event->record(handle_of(stream));
  if (error == cudaErrorInvalidResourceHandle) {  // a stream of another device
    cudaGetLastError();
    synchronize(ordinal, stream);
    return nullptr;
  }
  check(error, "recording an event of the caller's stream");
  if (event->is_reached()) return nullptr;
  return event;
}

bool lead(int ordinal, void* stream, std::uintptr_t other) {
  constexpr std::uintptr_t every = 0, of_this_thread = 2;
  if (other == every || other == of_this_thread) return false;
  const DeviceGuard guard(ordinal);
  RecordedEvent event;
  check(event.record(static_cast<cudaStream_t>(stream)), "recording an event of a message");
  event.queue_wait(handle_of(other));
  return true;
}

}  // namespace quadriga::cuda

namespace quadriga {

int cuda_ordinal_of(const void* memory) { return cuda::ordinal_of(memory); }

}  // namespace quadriga
