// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/program.cpp: captures a stream, and launches the graph that comes of it.
//
// The stream is one of its own: nobody else asks it anything meanwhile, which would end the
// capture, and what runs on others isn't touched.
#include "device/cuda/program.h"

#include <exception>
#include <memory>
#include <vector>

#include "device/cuda/cuda_check.h"

namespace quadriga::cuda {
namespace {

struct DestroyStream {
  void operator()(cudaStream_t stream) const noexcept { cudaStreamDestroy(stream); }
};
struct DestroyGraph {
  void operator()(cudaGraph_t graph) const noexcept { cudaGraphDestroy(graph); }
};
using OwnStream = std::unique_ptr<CUstream_st, DestroyStream>;
using OwnGraph = std::unique_ptr<CUgraph_st, DestroyGraph>;

OwnStream make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0),
        "creating a stream to record on");
  return OwnStream(stream);
}

/// A capture ends whatever happened in it: the thread's later calls would be refused otherwise.
OwnGraph capture(cudaStream_t stream, const std::function<void(cudaStream_t)>& queue) {
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "beginning to record");
  std::exception_ptr error;
  try {
    queue(stream);
  } catch (...) {
    error = std::current_exception();
  }
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
  OwnGraph kept(graph);
  if (error) {
    cudaGetLastError();
    std::rethrow_exception(error);
  }
  check(ended, "recording what is queued");
  return kept;
}

}  // namespace

Program::Program(const std::function<void(cudaStream_t)>& queue) {
  const OwnStream stream = make_stream();
  instantiate(capture(stream.get(), queue).get());
}

/// A stream that waits for an event of one that records is recorded as well, whatever its device.
Program::Program(std::span<const int> devices, const std::function<void(JointStreams&)>& queue) {
  std::vector<OwnStream> streams;
  std::vector<cudaStream_t> native;
  for (const int device : devices) {
    const DeviceGuard guard(device);
    native.push_back(streams.emplace_back(make_stream()).get());
  }
  JointStreams joint(devices, native);
  const auto queue_all = [&](cudaStream_t) {
    joint.fork();
    queue(joint);
    joint.join();
  };
  instantiate(capture(native.front(), queue_all).get());
}

void Program::instantiate(cudaGraph_t graph) {
  cudaGraphExec_t executable = nullptr;
  check(cudaGraphInstantiate(&executable, graph, 0), "making a program of a recording");
  executable_.reset(executable);
}

void Program::replay(cudaStream_t stream) const {
  check(cudaGraphLaunch(executable_.get(), stream), "launching a recorded program");
}

void Program::Destroy::operator()(cudaGraphExec_t executable) const noexcept {
  if (cudaGraphExecDestroy(executable) != cudaSuccess) cudaGetLastError();
}

}  // namespace quadriga::cuda
