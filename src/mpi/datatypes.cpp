// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/datatypes.cpp: datatypes by their handles.
//
// Invariants
//   1. mutex guards the table; a thread keeps its last type by itself, and drops it when
//      `generation` has changed, which every type that is freed does.
//   2. A type is forgotten before MPI frees it: its handle can't be another one's before.
#include "mpi/datatypes.h"

#include <atomic>
#include <mutex>
#include <unordered_map>

namespace quadriga::mpi {
namespace {

std::mutex mutex;
std::unordered_map<std::uint64_t, DatatypePtr>& table() {
  static auto* const made = new std::unordered_map<std::uint64_t, DatatypePtr>;
  return *made;
}
std::atomic<std::uint64_t> generation{1};

struct Last {
  std::uint64_t handle = 0;
  std::uint64_t generation = 0;
  DatatypePtr type;
};
thread_local Last last;

}  // namespace

message::Layout Datatype::times(std::int64_t count) const {
  return count == 1 ? layout_ : message::Layout::contiguous(count, layout_);
}

DatatypePtr datatype_of(MPI_Datatype datatype) {
  const std::uint64_t handle = number_of(datatype);
  const std::uint64_t now = generation.load(std::memory_order_acquire);
  if (last.handle == handle && last.generation == now) return last.type;
  DatatypePtr found;
  {
    const std::lock_guard lock(mutex);
    if (const auto at = table().find(handle); at != table().end()) found = at->second;
  }
  if (!found) {
    found = std::make_shared<const Datatype>(decode(datatype), leaf_bytes(datatype));
    const std::lock_guard lock(mutex);
    table()[handle] = found;
  }
  last = {handle, now, found};
  return found;
}

void forget(MPI_Datatype datatype) noexcept {
  const std::lock_guard lock(mutex);
  if (table().erase(number_of(datatype)) > 0) generation.fetch_add(1, std::memory_order_acq_rel);
}

std::int64_t bytes_of(MPI_Datatype datatype) noexcept {
  MPI_Count bytes = 0;
  PMPI_Type_size_x(datatype, &bytes);
  return static_cast<std::int64_t>(bytes);
}

}  // namespace quadriga::mpi
