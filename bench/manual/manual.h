// SPDX-License-Identifier: BSD-3-Clause
// bench/manual/manual.h: a stream of chunks over GPUs as programs write it by hand, beside ours.
//
// Each file is one way, whole: its lines are counted beside those of the pipeline. All of them
// update chunks in pinned memory by the same dummy kernel, and end when all are home. They return
// the seconds of that, without those of making streams, buffers and engines.
#pragma once

#include <cuda_runtime_api.h>
#include <quadriga/machine.h>

#include <cstddef>
#include <span>

#include "device/cuda/cuda_check.h"
#include "line.h"

namespace quadriga::bench::manual {

struct Chunk {
  std::byte* memory = nullptr;  ///< Pinned.
  std::size_t bytes = 0;
};

struct Work {
  int gpus = 1;
  std::span<const Chunk> chunks;
  std::size_t largest = 0;         ///< Bytes of a chunk, at most.
  double kernel_seconds_byte = 0;  ///< Of the kernel.
};

/// Adds one to each byte, and takes as long as stated.
void queue_dummy(cudaStream_t stream, std::byte* memory, std::size_t bytes, double seconds_byte);

/// One thread, one stream and one buffer a GPU, chunks by turns.
double naive(const Work& work);
/// As many chunks as fit the memory: all copies in, all kernels, all copies out, a stream each.
double all_in_all_out(const Work& work, std::size_t memory_bytes);
/// A thread a GPU with one stream takes the next chunk when it has done with one.
double thread_a_gpu(const Work& work);
/// The same as a pipeline.
double pipeline(const Work& work, Machine machine);

}  // namespace quadriga::bench::manual
