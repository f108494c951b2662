// SPDX-License-Identifier: BSD-3-Clause
// bench/gpu_spin.cu: a kernel that takes a stated time and a whole GPU.
#include "device/cuda/cuda_check.h"
#include "gpu_spin.h"

namespace quadriga::bench {
namespace {

constexpr int threads = 1024;  // Two blocks fill a multiprocessor of all GPUs since the A100.

__device__ std::int64_t device_nanoseconds() {
  std::int64_t time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}

__global__ void __launch_bounds__(threads)
    spin(std::int64_t nanoseconds, std::uint8_t* bytes, std::int64_t count) {
  const std::int64_t begin = device_nanoseconds();
  const std::int64_t first = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (std::int64_t i = first; i < count; i += std::int64_t{gridDim.x} * blockDim.x) ++bytes[i];
  while (device_nanoseconds() - begin < nanoseconds) __nanosleep(500);
}

}  // namespace

void queue_spin(cudaStream_t stream, std::int64_t nanoseconds, std::uint8_t* bytes,
                std::int64_t count) {
  int device = 0;
  int multiprocessors = 0;
  int resident = 0;
  cuda::check(cudaGetDevice(&device), "asking for the device");
  cuda::check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
              "asking for multiprocessors");
  cuda::check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, spin, threads, 0),
              "asking for resident blocks");
  spin<<<multiprocessors * resident, threads, 0, stream>>>(nanoseconds, bytes, count);
  cuda::check(cudaGetLastError(), "launching a kernel");
}

}  // namespace quadriga::bench
