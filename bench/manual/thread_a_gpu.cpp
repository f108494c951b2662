// SPDX-License-Identifier: BSD-3-Clause
// bench/manual/thread_a_gpu.cpp: a thread and a stream a GPU, chunks to whoever is free.
#include <atomic>
#include <barrier>
#include <thread>
#include <vector>

#include "manual/manual.h"

namespace quadriga::bench::manual {
namespace {

using cuda::check;

void serve(const Work& work, int gpu, std::atomic<std::size_t>& next, std::barrier<>& together) {
  check(cudaSetDevice(gpu), "choosing a device");
  cudaStream_t stream = nullptr;
  void* buffer = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
  check(cudaMalloc(&buffer, work.largest), "a buffer");
  together.arrive_and_wait();
  for (std::size_t i = next++; i < work.chunks.size(); i = next++) {
    const auto [memory, bytes] = work.chunks[i];
    check(cudaMemcpyAsync(buffer, memory, bytes, cudaMemcpyHostToDevice, stream), "in");
    queue_dummy(stream, static_cast<std::byte*>(buffer), bytes, work.kernel_seconds_byte);
    check(cudaMemcpyAsync(memory, buffer, bytes, cudaMemcpyDeviceToHost, stream), "out");
    check(cudaStreamSynchronize(stream), "a chunk");
  }
  together.arrive_and_wait();
  check(cudaFree(buffer), "freeing a buffer");
  check(cudaStreamDestroy(stream), "ending a stream");
}

}  // namespace

// A failure ends the program, as in most that are written by hand.
double thread_a_gpu(const Work& work) {
  std::atomic<std::size_t> next{0};
  std::barrier together(work.gpus + 1);
  std::vector<std::jthread> threads;
  for (int gpu = 0; gpu < work.gpus; ++gpu)
    threads.emplace_back([&, gpu] { serve(work, gpu, next, together); });
  together.arrive_and_wait();
  const double begin = now();
  together.arrive_and_wait();
  return now() - begin;
}

}  // namespace quadriga::bench::manual
