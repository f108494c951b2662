// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/staging_buffers.cpp: chunks: queued on streams, moved by threads.
#include "device/cuda/staging_buffers.h"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>

#include "base/affinity.h"
#include "base/cgroup.h"
#include "base/thread.h"
#include "device/cuda/cuda_check.h"
#include "device/operation.h"
#include "device/staging_plan.h"

namespace quadriga::cuda {
namespace {

bool is_unknown(const void* address) {
  cudaPointerAttributes attributes{};
  const cudaError_t error = cudaPointerGetAttributes(&attributes, address);
  if (error != cudaSuccess) cudaGetLastError();
  return error != cudaSuccess || attributes.type == cudaMemoryTypeUnregistered;
}

// Bytes from a copy's first to behind its last, on the side with this pitch.
std::size_t extent(const Copy& copy, std::size_t pitch) {
  return copy.height == 1 ? copy.width_bytes : (copy.height - 1) * pitch + copy.width_bytes;
}

}  // namespace

bool is_pageable(const Copy& copy) {
  if ((copy.from != host_space && copy.to != host_space) || bytes_of(copy) == 0) return false;
  const bool out = copy.to == host_space;
  const std::byte* const host = out ? copy.target : copy.source;
  return is_unknown(host) ||
         is_unknown(host + extent(copy, out ? copy.target_pitch : copy.source_pitch) - 1);
}

StagingBuffers::StagingBuffers(int threads, std::vector<int> processors)
    : most_threads_(std::max(threads, 1)), processors_(std::move(processors)) {}

StagingBuffers::~StagingBuffers() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
  for (auto& [stream, lane] : lanes_) {
    cudaFreeHost(lane.small);
    cudaFreeHost(lane.large);
  }
}

StagingBuffers::Lane& StagingBuffers::lane(cudaStream_t stream, bool out) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = lanes_.find({stream, out});
    if (found != lanes_.end()) return found->second;
  }
  std::byte* const memory = allocate(buffers * small_bytes + sizeof(Words));
  const std::lock_guard lock(mutex_);
  start_threads();
  Lane& lane = lanes_[{stream, out}];
  lane.out = out;
  lane.small = memory;
  lane.words = new (memory + buffers * small_bytes) Words;
  turns_.push_back(&lane);
  if (abandoned_.contains(stream)) drop(lane);
  return lane;
}

// Pages are near to the processor that asks for them.
std::byte* StagingBuffers::allocate(std::size_t bytes) const {
  int device = 0;
  void* memory = nullptr;
  cudaError_t error = cudaGetDevice(&device);
  run_near(processors_, [&] {
    if (error == cudaSuccess) error = cudaSetDevice(device);
    if (error == cudaSuccess) error = cudaHostAlloc(&memory, bytes, cudaHostAllocPortable);
  });
  if (error != cudaSuccess) check(error, fmt::format("pinning {} bytes for copies", bytes));
  return static_cast<std::byte*>(memory);
}

std::byte* StagingBuffers::buffer(Lane& lane, const Chunk& chunk) const {
  const std::uint64_t number = chunk.number % buffers;
  if (chunk.width * chunk.height <= small_bytes) return lane.small + number * small_bytes;
  if (!lane.large) lane.large = allocate(buffers * chunk_bytes);
  return lane.large + number * chunk_bytes;
}

void StagingBuffers::queue_in(cudaStream_t stream, const Copy& copy, bool ready) {
  Lane& in = lane(stream, false);
  Chunk chunk;
  ++in.copies;
  if (!ready) {
    chunk.start = {&in.words->begun.value, in.copies};
    queue_open(stream, chunk.start);
  }
  queue_chunks(stream, in, copy, chunk);
}

Gate StagingBuffers::queue_out(cudaStream_t stream, const Copy& copy) {
  Lane& out = lane(stream, true);
  Chunk chunk;
  chunk.before = overlapped(out, copy);
  queue_chunks(stream, out, copy, chunk);
  out.ranges.push_back({copy.target, copy.target + extent(copy, copy.target_pitch), out.queued});
  return {&out.words->through.value, out.queued};
}

void StagingBuffers::abandon(cudaStream_t stream) noexcept {
  std::unique_lock lock(mutex_);
  abandoned_.insert(stream);
  for (const bool out : {false, true}) {
    const auto found = lanes_.find({stream, out});
    if (found == lanes_.end()) continue;
    Lane& lane = found->second;
    waiting_ -= lane.waiting.size();
    lane.waiting.clear();
    lane.abandoned = true;
    finished_.wait(lock, [&] { return lane.moving == 0; });
    drop(lane);
  }
}

// No thread has a chunk of it. Its gates are for streams of other devices, too.
void StagingBuffers::drop(Lane& lane) {
  lane.abandoned = true;
  Gate{&lane.words->through.value, std::numeric_limits<std::uint64_t>::max()}.open();
}

void StagingBuffers::add(Lane& lane, const Chunk& chunk) {
  {
    const std::lock_guard lock(mutex_);
    if (lane.abandoned) return;
    lane.waiting.push_back(chunk);
    if (lane.out) lane.done.push_back(false);
    ++waiting_;
  }
  changed_.notify_one();
}

/// What is on its way to the same place must be there first.
Gate StagingBuffers::overlapped(Lane& lane, const Copy& copy) {
  const auto home = [&](const Range& range) {
    return Gate{&lane.words->through.value, range.last}.is_open();
  };
  while (!lane.ranges.empty() && home(lane.ranges.front())) lane.ranges.pop_front();
  const std::byte* const end = copy.target + extent(copy, copy.target_pitch);
  std::uint64_t last = 0;
  for (const Range& range : lane.ranges)
    if (copy.target < range.end && range.begin < end) last = range.last;
  return last == 0 ? Gate{} : Gate{&lane.words->through.value, last};
}

// Cuts a copy into chunks: groups of runs, or parts of a run that is longer than a chunk.
void StagingBuffers::queue_chunks(cudaStream_t stream, Lane& lane, const Copy& copy, Chunk chunk) {
  const std::size_t host_pitch = lane.out ? copy.target_pitch : copy.source_pitch;
  const std::size_t device_pitch = lane.out ? copy.source_pitch : copy.target_pitch;
  std::byte* const host = lane.out ? copy.target : const_cast<std::byte*>(copy.source);
  std::byte* const device = lane.out ? const_cast<std::byte*>(copy.source) : copy.target;
  const std::size_t most_runs = std::max<std::size_t>(1, chunk_bytes / copy.width_bytes);
  for (std::size_t run = 0; run < copy.height; run += most_runs) {
    for (std::size_t offset = 0; offset < copy.width_bytes; offset += chunk_bytes) {
      chunk.number = lane.queued;
      chunk.width = std::min(chunk_bytes, copy.width_bytes - offset);
      chunk.height = std::min(most_runs, copy.height - run);
      chunk.pitch = host_pitch;
      chunk.host = host + run * host_pitch + offset;
      chunk.pinned = buffer(lane, chunk);
      ++lane.queued;
      add(lane, chunk);
      queue_piece(stream, lane, chunk, device + run * device_pitch + offset, device_pitch);
    }
  }
}

// What the stream does for a chunk: waits for its buffer, copies, and says so.
void StagingBuffers::queue_piece(cudaStream_t stream, Lane& lane, const Chunk& chunk,
                                 std::byte* device, std::size_t pitch) {
  Word& by_thread = lane.words->by_thread[chunk.number % buffers];
  Word& by_stream = lane.words->by_stream[chunk.number % buffers];
  if (!lane.out)
    queue_wait(stream, {&by_thread.value, chunk.number + 1});
  else if (chunk.number >= buffers)
    queue_wait(stream, {&by_thread.value, chunk.number + 1 - buffers});
  const bool dense = chunk.height == 1 || pitch == chunk.width;
  const cudaMemcpyKind kind = lane.out ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice;
  std::byte* const target = lane.out ? chunk.pinned : device;
  std::byte* const source = lane.out ? device : chunk.pinned;
  check(dense ? cudaMemcpyAsync(target, source, chunk.width * chunk.height, kind, stream)
              : cudaMemcpy2DAsync(target, lane.out ? chunk.width : pitch, source,
                                  lane.out ? pitch : chunk.width, chunk.width, chunk.height, kind,
                                  stream),
        "a copy through a pinned buffer");
  queue_open(stream, {&by_stream.value, chunk.number + 1});
}

void StagingBuffers::start_threads() {
  while (threads_.size() < static_cast<std::size_t>(most_threads_))
    threads_.push_back(start_thread("quadriga copier", [this] { work(); }));
}

bool StagingBuffers::can_move(const Lane& lane, const Chunk& chunk) {
  std::uint64_t* const by_stream = &lane.words->by_stream[chunk.number % buffers].value;
  if (lane.out) return Gate{by_stream, chunk.number + 1}.is_open() && chunk.before.is_open();
  const bool free = chunk.number < buffers || Gate{by_stream, chunk.number + 1 - buffers}.is_open();
  return free && chunk.start.is_open();
}

StagingBuffers::Lane* StagingBuffers::take(Chunk& chunk) {
  for (std::size_t i = 0; i < turns_.size(); ++i) {
    Lane* const lane = turns_[i];
    if (lane->waiting.empty() || !can_move(*lane, lane->waiting.front())) continue;
    chunk = lane->waiting.front();
    lane->waiting.pop_front();
    --waiting_;
    ++lane->moving;
    std::rotate(turns_.begin() + static_cast<std::ptrdiff_t>(i),
                turns_.begin() + static_cast<std::ptrdiff_t>(i) + 1, turns_.end());
    return lane;
  }
  return nullptr;
}

void StagingBuffers::move(const Lane& lane, const Chunk& chunk) {
  Copy piece;
  piece.width_bytes = chunk.width;
  piece.height = chunk.height;
  piece.source = lane.out ? chunk.pinned : chunk.host;
  piece.target = lane.out ? chunk.host : chunk.pinned;
  piece.source_pitch = lane.out ? chunk.width : chunk.pitch;
  piece.target_pitch = lane.out ? chunk.pitch : chunk.width;
  move_bytes(piece);
  Gate{&lane.words->by_thread[chunk.number % buffers].value, chunk.number + 1}.open();
}

void StagingBuffers::finish(Lane& lane, const Chunk& chunk) {
  if (--lane.moving == 0) finished_.notify_all();
  if (!lane.out) return;
  lane.done[chunk.number - lane.through] = true;
  while (!lane.done.empty() && lane.done.front()) {
    lane.done.pop_front();
    ++lane.through;
  }
  Gate{&lane.words->through.value, lane.through}.open();
}

void StagingBuffers::work() {
  ::prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);  // Else pauses are 50 us longer.
  bind_thread(processors_);
  constexpr auto pause = std::chrono::microseconds(10);
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (waiting_ == 0 || scouting_) {
      changed_.wait(lock);
      continue;
    }
    Chunk chunk;
    Lane* const lane = take(chunk);
    if (lane == nullptr) {
      scouting_ = true;
      lock.unlock();
      std::this_thread::sleep_for(pause);
      lock.lock();
      scouting_ = false;
      continue;
    }
    changed_.notify_one();
    lock.unlock();
    move(*lane, chunk);
    lock.lock();
    finish(*lane, chunk);
  }
}

std::vector<std::shared_ptr<StagingBuffers>> make_staging(const Machine& machine) {
  std::vector<std::shared_ptr<StagingBuffers>> of_device(machine.devices.size());
  for (const StagingGroup& group : plan_staging(machine, usable_cores())) {
    const auto staging = std::make_shared<StagingBuffers>(group.threads, group.processors);
    for (const DeviceId device : group.devices) of_device[device] = staging;
  }
  return of_device;
}

}  // namespace quadriga::cuda
