// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/stream_gate.cpp: waits and writes of streams, which only the driver's own
// interface has.
#include "device/cuda/stream_gate.h"

#include <cuda.h>

#include "device/cuda/cuda_check.h"

namespace quadriga::cuda {
namespace {

using WordOperation = CUresult (*)(CUstream, CUdeviceptr, cuuint64_t, unsigned int);

// The driver's library isn't linked to: it is absent where there is no driver.
struct Found {
  WordOperation operation = nullptr;
  cudaError_t error = cudaSuccess;
};

Found find(const char* name) noexcept {
  constexpr unsigned int since = 12000;
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &function, since, cudaEnableDefault, &found);
  if (error == cudaSuccess && function == nullptr) return {nullptr, cudaErrorNotSupported};
  return {reinterpret_cast<WordOperation>(function), error};
}

// The driver's errors have the runtime's numbers.
cudaError_t queue(const Found& found, cudaStream_t stream, Gate gate, unsigned int flags) noexcept {
  if (found.error != cudaSuccess) return found.error;
  return static_cast<cudaError_t>(
      found.operation(stream, reinterpret_cast<CUdeviceptr>(gate.word), gate.value, flags));
}

}  // namespace

cudaError_t try_queue_wait(cudaStream_t stream, Gate gate) noexcept {
  static const Found wait = find("cuStreamWaitValue64");
  return queue(wait, stream, gate, CU_STREAM_WAIT_VALUE_GEQ);
}

void queue_wait(cudaStream_t stream, Gate gate) {
  check(try_queue_wait(stream, gate), "making a stream wait for a word");
}

cudaError_t try_queue_open(cudaStream_t stream, Gate gate) noexcept {
  static const Found write = find("cuStreamWriteValue64");
  return queue(write, stream, gate, CU_STREAM_WRITE_VALUE_DEFAULT);
}

void queue_open(cudaStream_t stream, Gate gate) {
  check(try_queue_open(stream, gate), "making a stream write a word");
}

}  // namespace quadriga::cuda
