// SPDX-License-Identifier: BSD-3-Clause
// bench/gpu_gather.cu: a granule of 8 bytes a thread, several on their way.
#include "base/random.h"
#include "device/cuda/cuda_check.h"
#include "gpu_gather.h"

namespace quadriga::bench {
namespace {

using Word = unsigned long long;
constexpr int threads = 256;
constexpr int each = 8;

__global__ void fill_words(Word* data, std::int64_t words, std::uint64_t seed) {
  const std::int64_t apart = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < words; i += apart)
    data[i] = mix(mix(seed) + static_cast<std::uint64_t>(i));
}

template <bool gathers, int words>
__global__ void move_granules(Word* scattered, const std::uint32_t* places, std::int64_t step,
                              std::int64_t count, Word* packed) {
  const std::int64_t first = std::int64_t{blockIdx.x} * threads * each + threadIdx.x;
  Word* place[each];
  Word value[each] = {};
  for (int i = 0; i < each; ++i) {
    const std::int64_t granule = first + i * threads;
    if (granule >= count) continue;
    const std::int64_t run = granule / words;
    const std::int64_t begin = places != nullptr ? places[run] : run * step;
    place[i] = scattered + begin + granule % words;
  }
  for (int i = 0; i < each; ++i)
    if (first + i * threads < count) value[i] = gathers ? *place[i] : packed[first + i * threads];
  for (int i = 0; i < each; ++i)
    if (first + i * threads < count) (gathers ? packed[first + i * threads] : *place[i]) = value[i];
}

template <bool gathers>
void move(cudaStream_t stream, void* scattered, const std::uint32_t* places, std::int64_t step,
          int run, std::int64_t runs, void* packed) {
  const std::int64_t count = runs * run / 8;
  const auto blocks = static_cast<unsigned>((count + threads * each - 1) / (threads * each));
  const auto with = [&]<int words>(std::integral_constant<int, words>) {
    move_granules<gathers, words><<<blocks, threads, 0, stream>>>(
        static_cast<Word*>(scattered), places, step / 8, count, static_cast<Word*>(packed));
  };
  if (run == 8)
    with(std::integral_constant<int, 1>{});
  else if (run == 48)
    with(std::integral_constant<int, 6>{});
  else
    with(std::integral_constant<int, 8>{});
  cuda::check(cudaGetLastError(), "a gather");
}

}  // namespace

void fill_random_words(void* data, std::size_t bytes, std::uint64_t seed) {
  fill_words<<<4096, threads>>>(static_cast<Word*>(data), static_cast<std::int64_t>(bytes / 8),
                                seed);
  cuda::check(cudaGetLastError(), "random bits");
}

void gather(cudaStream_t stream, const void* from, const std::uint32_t* places, std::int64_t step,
            int run, std::int64_t runs, void* into) {
  move<true>(stream, const_cast<void*>(from), places, step, run, runs, into);
}

void scatter(cudaStream_t stream, void* into, const std::uint32_t* places, std::int64_t step,
             int run, std::int64_t runs, const void* from) {
  move<false>(stream, into, places, step, run, runs, const_cast<void*>(from));
}

}  // namespace quadriga::bench
