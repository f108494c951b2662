// SPDX-License-Identifier: BSD-3-Clause
// bench/manual/all_in_all_out.cpp: batches of chunks that fit the GPUs, in three loops.
#include <algorithm>
#include <vector>

#include "manual/manual.h"

namespace quadriga::bench::manual {
namespace {

using cuda::check;

/// A chunk's place on a GPU.
struct Slot {
  int gpu = 0;
  cudaStream_t stream = nullptr;
  void* buffer = nullptr;
};

std::vector<Slot> make_slots(const Work& work, std::size_t memory_bytes) {
  const auto gpus = static_cast<std::size_t>(work.gpus);
  const std::size_t fit = std::max<std::size_t>(1, memory_bytes / work.largest) * gpus;
  std::vector<Slot> slots(std::min(fit, work.chunks.size()));
  for (std::size_t i = 0; i < slots.size(); ++i) {
    slots[i].gpu = static_cast<int>(i % gpus);
    check(cudaSetDevice(slots[i].gpu), "choosing a device");
    check(cudaStreamCreateWithFlags(&slots[i].stream, cudaStreamNonBlocking), "creating a stream");
    check(cudaMalloc(&slots[i].buffer, work.largest), "a buffer");
  }
  return slots;
}

void run_batch(const Work& work, std::span<const Slot> slots, std::span<const Chunk> chunks) {
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    check(cudaSetDevice(slots[i].gpu), "choosing a device");
    check(cudaMemcpyAsync(slots[i].buffer, chunks[i].memory, chunks[i].bytes,
                          cudaMemcpyHostToDevice, slots[i].stream),
          "in");
  }
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    check(cudaSetDevice(slots[i].gpu), "choosing a device");
    queue_dummy(slots[i].stream, static_cast<std::byte*>(slots[i].buffer), chunks[i].bytes,
                work.kernel_seconds_byte);
  }
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    check(cudaSetDevice(slots[i].gpu), "choosing a device");
    check(cudaMemcpyAsync(chunks[i].memory, slots[i].buffer, chunks[i].bytes,
                          cudaMemcpyDeviceToHost, slots[i].stream),
          "out");
  }
  for (std::size_t i = 0; i < chunks.size(); ++i)
    check(cudaStreamSynchronize(slots[i].stream), "the batch");
}

}  // namespace

double all_in_all_out(const Work& work, std::size_t memory_bytes) {
  const std::vector<Slot> slots = make_slots(work, memory_bytes);
  const double begin = now();
  for (std::size_t first = 0; first < work.chunks.size(); first += slots.size())
    run_batch(work, slots,
              work.chunks.subspan(first, std::min(slots.size(), work.chunks.size() - first)));
  const double seconds = now() - begin;
  for (const Slot& slot : slots) {
    check(cudaSetDevice(slot.gpu), "choosing a device");
    check(cudaFree(slot.buffer), "freeing a buffer");
    check(cudaStreamDestroy(slot.stream), "ending a stream");
  }
  return seconds;
}

}  // namespace quadriga::bench::manual
