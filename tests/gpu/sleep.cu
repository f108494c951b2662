// SPDX-License-Identifier: BSD-3-Clause
// tests/gpu/sleep.cu: kernels that do nothing useful: one for a stated time, one once.
#include "gpu/sleep.h"

#include <cstdint>

namespace quadriga {
namespace {

__device__ std::int64_t device_nanoseconds() {
  std::int64_t time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}

__global__ void sleep(std::int64_t nanoseconds) {
  const std::int64_t begin = device_nanoseconds();
  while (device_nanoseconds() - begin < nanoseconds) __nanosleep(10000);
}

__global__ void fault(int* nowhere) { *nowhere = 1; }

}  // namespace

void queue_sleep(void* stream, int milliseconds) {
  sleep<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(std::int64_t{1000000} * milliseconds);
}

std::size_t bytes_for_milliseconds() { return std::size_t{256} << 20; }

void queue_fault(void* stream) {
  fault<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(reinterpret_cast<int*>(std::uintptr_t{64}));
}

}  // namespace quadriga
