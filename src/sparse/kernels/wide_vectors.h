// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/wide_vectors.h: loops compiled for the vectors that the processor has.
//
// Sums have lanes in the source and nothing is contracted, so that results have the same bits by
// any instructions. AVX-512 brings fused operations, which g++ 12 forms of complex products even
// where it's told not to contract: these get AVX2 at most.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "sparse/kernels/number.h"

#if defined(__x86_64__)
#define QUADRIGA_AVX512 gnu::target("avx512f,avx512bw,avx512dq,avx512vl")
#endif

namespace quadriga::sparse {

#if defined(__x86_64__)
inline bool has_avx512() noexcept {
  static const bool found =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return found;
}

template <class Work>
[[gnu::target("avx2"), gnu::flatten]] void by_avx2(const Work& work) {
  work();
}
template <class Work>
[[QUADRIGA_AVX512, gnu::flatten]] void by_avx512(const Work& work) {
  work();
}

/// Calls `work()`, which computes in T, with all that it calls of the same source inlined.
template <class T, class Work>
void in_wide_vectors(const Work& work) {
  if constexpr (!is_complex<T>)
    if (has_avx512()) return by_avx512(work);
  if (__builtin_cpu_supports("avx2")) return by_avx2(work);
  work();
}
#else
inline bool has_avx512() noexcept { return false; }

template <class T, class Work>
void in_wide_vectors(const Work& work) {
  work();
}
#endif

}  // namespace quadriga::sparse
