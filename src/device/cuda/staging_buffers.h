// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/staging_buffers.h: copies between devices and pageable memory, through pinned
// buffers that threads fill and empty.
//
// A copy is queued on its stream at once, in chunks; the stream waits at gates for threads, threads
// wait at gates for the stream, and nobody else waits.
//
// Invariants
//   1. Copies of a stream are queued by one thread at a time, its issuer, which alone uses its
//      lanes' `large`, `queued`, `copies` and `ranges`. `mutex_` guards what is shared: a lane's
//      `waiting`, `moving`, `done`, `through` and `abandoned`, and the members of StagingBuffers;
//      words are atomic. It isn't held while bytes move, nor during calls of the runtime.
//   2. A lane's chunks pass through its buffers in turn, numbered from 0; chunk q uses buffer
//      q % buffers after chunk q - buffers has left it: the small one of that number, or the large
//      one, which lanes get with the first chunk that needs it, for pinning takes long. Threads
//      take chunks of a lane in order.
//   3. A thread takes a chunk only when it can move all of it without waiting.
//   4. An abandoned lane takes no chunks, its gates are open, and no thread moves its bytes.
//   5. One idle thread at a time, the scout, looks for chunks; a scout that finds one wakes the
//      next.
//   6. Threads have a chunk, and are awake, before its stream is told to wait for them: any call of
//      the runtime may last until all streams are idle, for example while a library loads kernels.
#pragma once

#include <cuda_runtime_api.h>
#include <quadriga/machine.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "device/backend.h"
#include "device/cuda/stream_gate.h"

namespace quadriga::cuda {

/// Whether the host's side of a copy is memory that the device can't read or write by itself.
bool is_pageable(const Copy& copy);

class StagingBuffers {
 public:
  /// At most so many threads, on these processors (anywhere if none is named), and buffers near to
  /// them; both start with the first copy.
  explicit StagingBuffers(int threads, std::vector<int> processors = {});
  /// Drops what is left: nothing may be in flight on devices that aren't lost.
  ~StagingBuffers();
  StagingBuffers(const StagingBuffers&) = delete;
  StagingBuffers& operator=(const StagingBuffers&) = delete;

  /// Queues a copy from the host. `ready` says that the source's content is there now; else it is
  /// once the stream has reached this copy. Errors: as check().
  void queue_in(cudaStream_t stream, const Copy& copy, bool ready);
  /// Queues a copy to the host, which is complete once the gate is open.
  Gate queue_out(cudaStream_t stream, const Copy& copy);
  /// The device of a stream is lost: its copies are dropped where they are. Returns once no thread
  /// touches their memory any more; a chunk takes a millisecond. Their gates are open then, and so
  /// are those of what is queued later, which is dropped as well. Any thread.
  void abandon(cudaStream_t stream) noexcept;

 private:
  static constexpr std::size_t chunk_bytes = std::size_t{4} << 20;
  static constexpr std::size_t small_bytes = std::size_t{64} << 10;
  static constexpr std::uint64_t buffers = 16;

  /// Words of a lane, pinned, each on a line of its own.
  struct alignas(64) Word {
    std::uint64_t value = 0;
  };
  struct Words {
    Word by_thread[buffers];  // Chunks that a thread has filled or emptied.
    Word by_stream[buffers];  // Chunks that the stream has read or written.
    Word through;             // Out: all chunks before this one are at home.
    Word begun;               // In: copies that the stream has reached.
  };
  struct Chunk {
    std::uint64_t number = 0;
    std::byte* host = nullptr;
    std::byte* pinned = nullptr;
    std::size_t width = 0;
    std::size_t height = 1;
    std::size_t pitch = 0;
    Gate start;   // In: when the source is there.
    Gate before;  // Out: what must be at home first, because it goes to the same place.
  };
  struct Range {
    const std::byte* begin = nullptr;
    const std::byte* end = nullptr;
    std::uint64_t last = 0;  // Number after its last chunk.
  };
  struct Lane {
    bool out = false;
    std::byte* small = nullptr;  // The buffers, and the words behind them.
    std::byte* large = nullptr;
    Words* words = nullptr;
    std::uint64_t queued = 0;   // Chunks so far.
    std::uint64_t through = 0;  // Out: chunks that are home, all before included.
    bool abandoned = false;
    std::uint64_t copies = 0;
    std::deque<Chunk> waiting;
    int moving = 0;         // Chunks that threads have taken and not finished.
    std::deque<bool> done;  // Out: of the chunks from `through` on.
    std::deque<Range> ranges;
  };

  Lane& lane(cudaStream_t stream, bool out);
  void add(Lane& lane, const Chunk& chunk);
  static void drop(Lane& lane);
  void queue_chunks(cudaStream_t stream, Lane& lane, const Copy& copy, Chunk first);
  void queue_piece(cudaStream_t stream, Lane& lane, const Chunk& chunk, std::byte* device,
                   std::size_t pitch);
  static Gate overlapped(Lane& lane, const Copy& copy);
  std::byte* allocate(std::size_t bytes) const;
  std::byte* buffer(Lane& lane, const Chunk& chunk) const;
  void start_threads();
  void work();
  static bool can_move(const Lane& lane, const Chunk& chunk);
  Lane* take(Chunk& chunk);
  static void move(const Lane& lane, const Chunk& chunk);
  void finish(Lane& lane, const Chunk& chunk);

  const int most_threads_;
  const std::vector<int> processors_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable finished_;  // A lane's last chunk that moved.
  std::map<std::pair<cudaStream_t, bool>, Lane> lanes_;
  std::set<cudaStream_t> abandoned_;
  std::vector<Lane*> turns_;  // Lanes in the order in which they are asked next.
  std::size_t waiting_ = 0;   // Chunks of all lanes.
  bool scouting_ = false;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

/// By device: one for all CUDA devices of a NUMA node; null for other kinds.
std::vector<std::shared_ptr<StagingBuffers>> make_staging(const Machine& machine);

}  // namespace quadriga::cuda
