// SPDX-License-Identifier: BSD-3-Clause
// tests/fake_cuda/streams.cpp: the threads of streams, and the list of memory.
#include "fake_cuda/streams.h"

#include <chrono>
#include <set>
#include <utility>

using quadriga::fake_cuda::faults;

namespace {

std::mutex streams_mutex;  // Guards streams().
std::set<CUstream_st*>& streams() {
  static auto* const all = new std::set<CUstream_st*>;
  return *all;
}

}  // namespace

CUstream_st::CUstream_st(std::uint64_t seed) : random(seed), thread([this] { run(); }) {
  const std::lock_guard lock(streams_mutex);
  streams().insert(this);
}

CUstream_st::~CUstream_st() {
  {
    const std::lock_guard lock(streams_mutex);
    streams().erase(this);
  }
  {
    const std::lock_guard lock(mutex);
    ending = true;
  }
  changed.notify_all();
  thread.join();
}

void CUstream_st::push(std::function<void()> operation) {
  {
    const std::lock_guard lock(mutex);
    if (dead) return;
    queue.push_back(std::move(operation));
  }
  changed.notify_all();
}

void CUstream_st::synchronize() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [this] { return queue.empty(); });
}

void CUstream_st::give_up() {
  const std::lock_guard lock(mutex);
  dead = true;
  changed.notify_all();
}

void CUstream_st::run() {
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [this] { return ending || dead || !queue.empty(); });
    if (dead) queue.clear();
    if (queue.empty()) break;
    const std::function<void()> operation = queue.front();
    lock.unlock();
    if (random.below(16) == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(random.below(200)));
    if (!faults().stops) operation();
    if (faults().operations_left > 0 && --faults().operations_left == 0)
      quadriga::fake_cuda::fault_all();
    lock.lock();
    if (!dead) queue.pop_front();
    if (queue.empty()) changed.notify_all();
  }
  ended = true;
  changed.notify_all();
}

void CUstream_st::join_dead() {
  if (std::this_thread::get_id() == thread.get_id()) return;
  std::unique_lock lock(mutex);
  changed.wait(lock, [this] { return ended || !dead; });
}

namespace quadriga::fake_cuda {

Faults& faults() {
  static auto* const all = new Faults;
  return *all;
}

void fault_all() {
  faults().stops = true;
  const std::lock_guard lock(streams_mutex);
  for (CUstream_st* const stream : streams()) stream->give_up();
  release_waits();
  for (CUstream_st* const stream : streams()) stream->join_dead();
  faults().fault = cudaErrorIllegalAddress;
}

void start_anew() {
  faults().operations_left = -1;
  const std::lock_guard lock(streams_mutex);
  for (CUstream_st* const stream : streams()) stream->join_dead();
  faults().fault = cudaSuccess;
  faults().stops = false;
}

Memory& Memory::instance() {
  static auto* const all = new Memory;
  return *all;
}

void Memory::add(const void* memory, std::size_t bytes, int place) {
  const std::lock_guard lock(mutex);
  ranges[static_cast<const std::byte*>(memory)] = {bytes, place};
}

bool Memory::remove(const void* memory) {
  const std::lock_guard lock(mutex);
  return ranges.erase(static_cast<const std::byte*>(memory)) > 0;
}

int Memory::place_of(const void* memory) {
  const auto* const wanted = static_cast<const std::byte*>(memory);
  const std::lock_guard lock(mutex);
  auto next = ranges.upper_bound(wanted);
  if (next == ranges.begin()) return pageable;
  const auto& [begin, range] = *--next;
  return wanted < begin + range.bytes ? range.place : pageable;
}

std::size_t Memory::bytes_at(int place) {
  const std::lock_guard lock(mutex);
  std::size_t bytes = 0;
  for (const auto& [begin, range] : ranges) bytes += range.place == place ? range.bytes : 0;
  return bytes;
}

}  // namespace quadriga::fake_cuda
