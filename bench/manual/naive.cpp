// SPDX-License-Identifier: BSD-3-Clause
// bench/manual/naive.cpp: one stream and one buffer a GPU.
#include <vector>

#include "manual/manual.h"

namespace quadriga::bench::manual {

using cuda::check;

double naive(const Work& work) {
  const auto gpus = static_cast<std::size_t>(work.gpus);
  std::vector<cudaStream_t> streams(gpus);
  std::vector<void*> buffers(gpus);
  for (std::size_t gpu = 0; gpu < gpus; ++gpu) {
    check(cudaSetDevice(static_cast<int>(gpu)), "choosing a device");
    check(cudaStreamCreateWithFlags(&streams[gpu], cudaStreamNonBlocking), "creating a stream");
    check(cudaMalloc(&buffers[gpu], work.largest), "a buffer");
  }
  const double begin = now();
  for (std::size_t i = 0; i < work.chunks.size(); ++i) {
    const auto [memory, bytes] = work.chunks[i];
    const std::size_t gpu = i % gpus;
    check(cudaSetDevice(static_cast<int>(gpu)), "choosing a device");
    check(cudaMemcpyAsync(buffers[gpu], memory, bytes, cudaMemcpyHostToDevice, streams[gpu]), "in");
    queue_dummy(streams[gpu], static_cast<std::byte*>(buffers[gpu]), bytes,
                work.kernel_seconds_byte);
    check(cudaMemcpyAsync(memory, buffers[gpu], bytes, cudaMemcpyDeviceToHost, streams[gpu]),
          "out");
  }
  for (const cudaStream_t stream : streams) check(cudaStreamSynchronize(stream), "the chunks");
  const double seconds = now() - begin;
  for (std::size_t gpu = 0; gpu < gpus; ++gpu) {
    check(cudaSetDevice(static_cast<int>(gpu)), "choosing a device");
    check(cudaFree(buffers[gpu]), "freeing a buffer");
    check(cudaStreamDestroy(streams[gpu]), "ending a stream");
  }
  return seconds;
}

}  // namespace quadriga::bench::manual
