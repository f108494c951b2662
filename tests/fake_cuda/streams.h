// SPDX-License-Identifier: BSD-3-Clause
// tests/fake_cuda/streams.h: CUDA's streams, events and memory as the CUDA backend sees them, made
// of threads and memory of the host.
//
// Invariants
//   1. Each stream has a thread, which runs its operations in order, and now and then sleeps before
//      one, so that what doesn't wait for what it needs is found out.
//   2. An event's `recorded` counts its records, `reached` the latest that a stream got to. Who
//   waits
//      for it waits for what was recorded when the wait was queued. Events live to the end.
//   3. `mutex` of Memory guards its maps; nothing is called while it is held.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "base/random.h"

struct CUevent_st {
  std::atomic<std::uint64_t> recorded{0};
  std::atomic<std::uint64_t> reached{0};
};

struct CUstream_st {
  explicit CUstream_st(std::uint64_t seed) : random(seed), thread([this] { run(); }) {}
  /// Once all that is queued has run.
  ~CUstream_st();
  void push(std::function<void()> operation);
  void synchronize();

 private:
  void run();

  quadriga::Random random;  // The thread's.
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> queue;  // Guarded by mutex; its front runs.
  bool ending = false;                      // Guarded by mutex.
  std::thread thread;
};

namespace quadriga::fake_cuda {

constexpr int devices = 2;

/// What was allocated, where.
class Memory {
 public:
  static constexpr int pinned = -1;
  static constexpr int pageable = -2;

  void add(const void* memory, std::size_t bytes, int place);
  bool remove(const void* memory);
  /// A device, or pinned or pageable memory of the host.
  int place_of(const void* memory);
  static Memory& instance();

 private:
  struct Range {
    std::size_t bytes = 0;
    int place = pageable;
  };
  std::mutex mutex;
  std::map<const std::byte*, Range> ranges;
};

}  // namespace quadriga::fake_cuda
