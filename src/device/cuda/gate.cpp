// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/gate.cpp: waits and writes of streams, which only the driver's own interface has.
#include "device/cuda/gate.h"

#include <cuda.h>

#include "device/cuda/check.h"

namespace quadriga::cuda {
namespace {

using WordOperation = CUresult (*)(CUstream, CUdeviceptr, cuuint64_t, unsigned int);

// The driver's library isn't linked to: it is absent where there is no driver.
WordOperation find(const char* name) {
  constexpr unsigned int since = 12000;
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  check(cudaGetDriverEntryPointByVersion(name, &function, since, cudaEnableDefault, &found),
        "looking for a function of the driver");
  if (function == nullptr) fail(Errc::unavailable, "CUDA: the driver lacks stream operations");
  return reinterpret_cast<WordOperation>(function);
}

void queue(WordOperation operation, cudaStream_t stream, Gate gate, unsigned int flags) {
  const CUresult result =
      operation(stream, reinterpret_cast<CUdeviceptr>(gate.word), gate.value, flags);
  if (result == CUDA_SUCCESS) [[likely]]
    return;
  // Its numbers are the runtime's.
  check(static_cast<cudaError_t>(result), "an operation on a word");
}

}  // namespace

void queue_wait(cudaStream_t stream, Gate gate) {
  static const WordOperation wait = find("cuStreamWaitValue64");
  queue(wait, stream, gate, CU_STREAM_WAIT_VALUE_GEQ);
}

void queue_open(cudaStream_t stream, Gate gate) {
  static const WordOperation write = find("cuStreamWriteValue64");
  queue(write, stream, gate, CU_STREAM_WRITE_VALUE_DEFAULT);
}

}  // namespace quadriga::cuda
