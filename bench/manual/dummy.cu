// SPDX-License-Identifier: BSD-3-Clause
// bench/manual/dummy.cu: a kernel that changes its chunk and takes a stated time.
#include "manual/manual.h"

namespace quadriga::bench::manual {
namespace {

__device__ unsigned long long nanoseconds() {
  unsigned long long time = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}

__global__ void dummy(unsigned char* memory, std::size_t bytes, unsigned long long duration) {
  const unsigned long long end = nanoseconds() + duration;
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < bytes;
       i += step)
    ++memory[i];
  while (nanoseconds() < end) {
  }
}

}  // namespace

void queue_dummy(cudaStream_t stream, std::byte* memory, std::size_t bytes, double seconds_byte) {
  constexpr int blocks = 128;  // all at once on any GPU of a server, so that none begins late
  constexpr int threads = 256;
  const double seconds = seconds_byte * static_cast<double>(bytes);
  dummy<<<blocks, threads, 0, stream>>>(reinterpret_cast<unsigned char*>(memory), bytes,
                                        static_cast<unsigned long long>(1e9 * seconds));
  cuda::check(cudaGetLastError(), "the dummy kernel");
}

}  // namespace quadriga::bench::manual
