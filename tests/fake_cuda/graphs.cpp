// SPDX-License-Identifier: BSD-3-Clause
// tests/fake_cuda/graphs.cpp: CUDA's functions for recording streams as graphs, and launching them.
#include <cuda_runtime_api.h>

#include <atomic>

#include "fake_cuda/streams.h"

using quadriga::fake_cuda::faults;
using quadriga::fake_cuda::has_faulted;
using quadriga::fake_cuda::state;

namespace {

std::atomic<std::uint64_t> launched{0};
std::atomic<int> living{0};

}  // namespace

std::uint64_t quadriga::fake_cuda::launched_graphs() { return launched; }
int quadriga::fake_cuda::living_graphs() { return living; }

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (has_faulted(stream->device)) return state(stream->device);
  if (stream->is_recording()) return cudaErrorIllegalState;
  return stream->begin_recording(), cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  if (!stream->is_recording()) return cudaErrorIllegalState;
  *graph = stream->end_recording().release();
  if (has_faulted(stream->device)) return state(stream->device);
  if (!*graph) return cudaErrorStreamCaptureInvalidated;
  return ++living, cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return delete graph, --living, cudaSuccess; }
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  if (state() != cudaSuccess) return state();
  if (faults().without_graphs) return cudaErrorMemoryAllocation;
  *executable = new CUgraphExec_st{graph->operations};
  return ++living, cudaSuccess;
}
// What it queued has copies of its operations.
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return delete executable, --living, cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  if (has_faulted(stream->device)) return state(stream->device);
  ++launched;
  for (const auto& each : executable->operations) stream->push(each);
  return cudaSuccess;
}

}  // extern "C"
