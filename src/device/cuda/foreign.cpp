// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/foreign.cpp: asks the runtime where memory is, and waits for streams of others.
#include "device/cuda/foreign.h"

#include <cuda_runtime_api.h>

#include "device/cuda/cuda_check.h"

namespace quadriga::cuda {

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
  else  // the numbers 1 and 2 are those of the runtime's own handles
    check(cudaStreamSynchronize(reinterpret_cast<cudaStream_t>(stream)),
          "waiting for the caller's stream");
}

}  // namespace quadriga::cuda
