// SPDX-License-Identifier: BSD-3-Clause
// bench/manual/dummy.cpp: a kernel that changes its chunk, takes a stated time, and a whole GPU.
#include <cstdint>

#include "gpu_spin.h"
#include "manual/manual.h"

namespace quadriga::bench::manual {

/// One of several streams at a time: else kernels of more streams would take no longer in all.
void queue_dummy(cudaStream_t stream, std::byte* memory, std::size_t bytes, double seconds_byte) {
  const double seconds = seconds_byte * static_cast<double>(bytes);
  queue_spin(stream, static_cast<std::int64_t>(1e9 * seconds),
             reinterpret_cast<std::uint8_t*>(memory), static_cast<std::int64_t>(bytes));
}

}  // namespace quadriga::bench::manual
