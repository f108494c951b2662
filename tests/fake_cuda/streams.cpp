// SPDX-License-Identifier: BSD-3-Clause
// tests/fake_cuda/streams.cpp: the threads of streams, and the list of memory.
#include "fake_cuda/streams.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <set>
#include <utility>

using quadriga::fake_cuda::fault;
using quadriga::fake_cuda::faults;
using quadriga::fake_cuda::has_stopped;

namespace {

std::mutex streams_mutex;  // Guards streams().
std::set<CUstream_st*>& streams() {
  static auto* const all = new std::set<CUstream_st*>;
  return *all;
}

}  // namespace

CUstream_st::CUstream_st(int where, std::uint64_t seed)
    : device(where), random(seed), thread([this] { run(); }) {
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
  if (thread.joinable()) thread.join();
}

void CUstream_st::push(std::function<void()> operation) {
  {
    const std::lock_guard lock(mutex);
    if (recording) {
      ++recording->branches[this].queued;
      return recording->operations.push_back(std::move(operation));
    }
    if (dead) return;
    queue.push_back(std::move(operation));
  }
  changed.notify_all();
}

void CUstream_st::begin_recording() {
  const std::lock_guard lock(mutex);
  recording = std::make_shared<CUgraph_st>();
  recording->first = this;
  spoiled = false;
}

std::unique_ptr<CUgraph_st> CUstream_st::end_recording() {
  const std::shared_ptr<CUgraph_st> all = recording;
  bool is_whole = true;
  for (auto& [stream, branch] : all->branches) {
    const std::lock_guard lock(stream->mutex);
    is_whole &= !stream->spoiled && (stream == this || branch.joined == branch.queued);
    stream->recording = nullptr;
  }
  const std::lock_guard lock(mutex);
  recording = nullptr;
  return is_whole && !spoiled ? std::make_unique<CUgraph_st>(*all) : nullptr;
}

void CUstream_st::record(cudaEvent_t event) {
  const std::lock_guard lock(mutex);
  if (!recording && !event->was_in_graph) return;
  event->was_in_graph = true;
  event->graph = recording;
  event->recorder = this;
  event->behind = recording ? recording->branches[this].queued : 0;
}

// What was recorded runs in the order of the calls, which is one of those that events allow.
bool CUstream_st::wait_in_recording(cudaEvent_t event) {
  const std::shared_ptr<CUgraph_st> of_event = event->graph.lock();
  const std::lock_guard lock(mutex);
  if (!of_event || (recording && recording != of_event)) return false;
  if (!recording) spoiled = false;
  recording = of_event;
  static_cast<void>(recording->branches[this]);
  CUgraph_st::Branch& other = recording->branches[event->recorder];
  if (this == recording->first) other.joined = std::max(other.joined, event->behind);
  return true;
}

bool CUstream_st::is_recording() {
  const std::lock_guard lock(mutex);
  return recording != nullptr;
}

void CUstream_st::spoil_recording() {
  const std::lock_guard lock(mutex);
  spoiled = true;
}

void CUstream_st::synchronize() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [this] { return queue.empty(); });
}

bool CUstream_st::try_synchronize() {
  std::unique_lock lock(mutex);
  return changed.wait_for(lock, std::chrono::seconds(240), [this] { return queue.empty(); });
}

bool CUstream_st::is_idle() {
  const std::lock_guard lock(mutex);
  return queue.empty();
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
    if (!has_stopped(device)) operation();
    if (faults().operations_left > 0 && --faults().operations_left == 0) fault(*this);
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

void CUstream_st::bury() {
  join_dead();
  const std::lock_guard lock(mutex);
  if (ended && thread.joinable()) thread.join();
}

namespace quadriga::fake_cuda {

int devices_by_default() {
  const char* const count = std::getenv("QUADRIGA_TEST_DEVICES");
  return count ? std::max(1, std::atoi(count)) : 2;
}

Faults& faults() {
  static auto* const all = new Faults{devices_by_default()};
  return *all;
}

// A stream that faults while another one's fault stops it must not wait for that one.
void fault(CUstream_st& stream) {
  const DeviceSet whose = faults().are_contained ? DeviceSet{1} << stream.device : all_devices;
  if (has(faults().stopped.fetch_or(whose), stream.device)) return;
  const std::lock_guard lock(streams_mutex);
  for (CUstream_st* const each : streams())
    if (has(whose, each->device)) each->give_up();
  stir_events();
  for (CUstream_st* const each : streams())
    if (has(whose, each->device)) each->join_dead();
  faults().faulted |= whose;
}

void start_anew() {
  faults().operations_left = -1;
  faults().are_contained = false;
  const std::lock_guard lock(streams_mutex);
  for (CUstream_st* const stream : streams())
    if (has_stopped(stream->device)) stream->bury();
  Memory::instance().free_all(faults().stopped);
  faults().faulted = 0;
  faults().stopped = 0;
}

Memory& Memory::instance() {
  static auto* const all = new Memory;
  return *all;
}

void Memory::add(const void* memory, std::size_t bytes, int place, bool is_pooled) {
  const std::lock_guard lock(mutex);
  ranges[static_cast<const std::byte*>(memory)] = {bytes, place, ++ids, is_pooled};
}

Memory::Found Memory::find(const void* memory) {
  const auto* const wanted = static_cast<const std::byte*>(memory);
  const std::lock_guard lock(mutex);
  auto next = ranges.upper_bound(wanted);
  if (next == ranges.begin()) return {};
  const auto& [begin, range] = *--next;
  if (wanted >= begin + range.bytes) return {};
  return {begin, range.bytes, range.id, range.is_pooled};
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

void Memory::free_all(DeviceSet places) {
  const std::lock_guard lock(mutex);
  std::erase_if(ranges, [places](const auto& each) {
    const bool is_there = each.second.place >= 0 && has(places, each.second.place);
    if (is_there) free_shared(const_cast<std::byte*>(each.first));
    return is_there;
  });
}

}  // namespace quadriga::fake_cuda
