// SPDX-License-Identifier: BSD-3-Clause
// src/message/kernels/list_tables_cuda.cpp: copies tables of lists to a device and frees them.
#include "message/kernels/list_tables_cuda.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/random.h"
#include "device/cuda/cuda_check.h"

namespace quadriga::message::cuda {
namespace {

using quadriga::cuda::check;

// A slice's table is some MB: its copy takes longer than queueing it.
constexpr std::int64_t runs_a_slice = std::int64_t{1} << 18;
constexpr std::size_t most_equal = 8;
constexpr std::size_t most_uses = 16;

std::uint64_t hash_of(const RunList& list) {
  std::uint64_t result = list.size();
  for (const ListedRun& run : list)
    result = mix(result ^ static_cast<std::uint64_t>(run.offset)) +
             static_cast<std::uint64_t>(run.packed);
  return result;
}

cudaEvent_t new_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "creating an event");
  return event;
}

}  // namespace

ListTables::ListTables(std::size_t most_bytes) : most_bytes_(most_bytes) {
  check(cudaStreamCreateWithFlags(&uploads_, cudaStreamNonBlocking), "creating a stream");
  check(cudaStreamCreateWithFlags(&releases_, cudaStreamNonBlocking), "creating a stream");
}

// Errors of a device that was lost say nothing new here.
ListTables::~ListTables() {
  for (Entry& entry : entries_) free(entry);
  for (Staging& staging : staging_) {
    if (staging.free != nullptr) cudaEventDestroy(staging.free);
    cudaFreeHost(staging.memory);
  }
  cudaStreamDestroy(uploads_);
  cudaStreamDestroy(releases_);
  cudaGetLastError();
}

ListTables::Entry* ListTables::find(const std::shared_ptr<const RunList>& list, bool whole) {
  const auto is_known = [&](const Entry& entry) {
    return entry.whole == whole &&
           (entry.list == list || std::ranges::any_of(entry.equal, [&](const auto& each) {
              return each.lock() == list;
            }));
  };
  auto found = std::ranges::find_if(entries_, is_known);
  if (found == entries_.end() && !entries_.empty()) {
    const std::uint64_t hash = hash_of(*list);
    found = std::ranges::find_if(entries_, [&](const Entry& entry) {
      return entry.whole == whole && entry.hash == hash && *entry.list == *list;
    });
    if (found != entries_.end()) {
      if (found->equal.size() == most_equal) found->equal.erase(found->equal.begin());
      found->equal.push_back(list);
    }
  }
  if (found == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found);
  return &entries_.front();
}

bool ListTables::for_each(const std::shared_ptr<const RunList>& list, bool whole,
                          cudaStream_t stream, const Use& use) {
  if (Entry* const entry = find(list, whole)) {
    entry->touched = true;
    for (const Slice& slice : entry->slices) {
      check(cudaStreamWaitEvent(stream, slice.arrived, 0), "waiting for a table");
      use(slice.runs, slice.table);
    }
    return true;
  }
  const std::int64_t most = whole ? std::numeric_limits<std::int64_t>::max() : runs_a_slice;
  entries_.emplace_front();
  Entry& entry = entries_.front();
  entry.touched = true;
  entry.list = list;
  entry.whole = whole;
  try {
    for (const RunSlice& runs : slices_of(*list, most)) {
      upload(entry, runs);
      const Slice& slice = entry.slices.back();
      check(cudaStreamWaitEvent(stream, slice.arrived, 0), "waiting for a table");
      use(slice.runs, slice.table);
    }
    // While the device works on the slices.
    entry.hash = hash_of(*list);
  } catch (...) {
    // What was queued may read tables: they are freed after all work of the device.
    cudaDeviceSynchronize();
    free(entry);
    entries_.pop_front();
    throw;
  }
  return false;
}

void ListTables::upload(Entry& entry, const RunSlice& runs) {
  const TableShape shape(*entry.list, runs);
  Staging& staging = staging_[next_staging_++ % staging_.size()];
  if (staging.free == nullptr) staging.free = new_event();
  check(cudaEventSynchronize(staging.free), "waiting for a table's copy");
  if (staging.bytes < shape.bytes()) {
    check(cudaFreeHost(std::exchange(staging.memory, nullptr)), "freeing pinned memory");
    staging.bytes = 0;
    void* memory = nullptr;
    check(cudaHostAlloc(&memory, shape.bytes(), cudaHostAllocDefault), "pinned memory for tables");
    staging.memory = static_cast<std::byte*>(memory);
    staging.bytes = shape.bytes();
  }
  shape.write(staging.memory);
  Slice slice;
  slice.runs = runs;
  check(cudaMallocAsync(&slice.memory, shape.bytes(), uploads_), "memory for a list's table");
  entry.slices.push_back(slice);
  entry.bytes += shape.bytes();
  bytes_ += shape.bytes();
  Slice& kept = entry.slices.back();
  kept.table = shape.at(static_cast<const std::byte*>(kept.memory));
  kept.arrived = new_event();
  check(
      cudaMemcpyAsync(kept.memory, staging.memory, shape.bytes(), cudaMemcpyHostToDevice, uploads_),
      "copying a list's table");
  check(cudaEventRecord(staging.free, uploads_), "recording an event");
  check(cudaEventRecord(kept.arrived, uploads_), "recording an event");
  uploaded_ += shape.bytes();
}

void ListTables::note_use(Entry& entry, cudaStream_t stream) {
  auto use = std::ranges::find(entry.uses, stream, &UseOfStream::stream);
  if (use == entry.uses.end()) {
    if (entry.uses.size() == most_uses) {  // The oldest use's end is waited for in its place.
      check(cudaStreamWaitEvent(stream, entry.uses.front().event, 0), "joining streams");
      cudaEventDestroy(entry.uses.front().event);
      entry.uses.erase(entry.uses.begin());
    }
    use = entry.uses.insert(entry.uses.end(), {stream, new_event()});
  }
  check(cudaEventRecord(use->event, stream), "recording an event");
}

void ListTables::used(cudaStream_t stream) {
  for (Entry& entry : entries_)
    if (std::exchange(entry.touched, false)) note_use(entry, stream);
  while (bytes_ > most_bytes_ && !entries_.empty()) {
    free(entries_.back());
    entries_.pop_back();
  }
}

void ListTables::free(Entry& entry) {
  for (const UseOfStream& use : entry.uses) {
    cudaStreamWaitEvent(releases_, use.event, 0);
    cudaEventDestroy(use.event);
  }
  for (const Slice& slice : entry.slices) {
    cudaStreamWaitEvent(releases_, slice.arrived, 0);
    cudaEventDestroy(slice.arrived);
    cudaFreeAsync(slice.memory, releases_);
  }
  bytes_ -= entry.bytes;
  entry.uses.clear();
  entry.slices.clear();
}

}  // namespace quadriga::message::cuda
