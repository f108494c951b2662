// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/datatypes.cpp: datatypes by their handles.
//
// Invariants
//   1. mutex guards the table, which holds the types; a thread finds those that it used last by
//      itself, and looks anew when `generation` has changed, which every type that is freed does.
//   2. A type is forgotten before MPI frees it: its handle can't be another one's before.
#include "mpi/datatypes.h"

#include <quadriga/error.h>

#include <array>
#include <atomic>
#include <mutex>
#include <unordered_map>

#include "mpi/world.h"

namespace quadriga::mpi {
namespace {

std::mutex mutex;
std::unordered_map<std::uint64_t, DatatypePtr>& table() {
  static auto* const made = new std::unordered_map<std::uint64_t, DatatypePtr>;
  return *made;
}
std::atomic<std::uint64_t> generation{1};

struct Known {
  std::uint64_t handle = 0;
  std::uint64_t generation = 0;
  const Datatype* type = nullptr;
};
// By handles: most programs take turns of a few types.
constexpr std::size_t known_types = 16;
constinit thread_local std::array<Known, known_types> known{};
Known& known_at(std::uint64_t handle) noexcept {
  return known[(handle * 0x9e3779b97f4a7c15ULL) >> 60];
}
static_assert(known_types == 1U << (64 - 60));

// MPI has no question for it, but refuses to send what isn't committed, also to nobody.
bool is_committed(MPI_Datatype datatype) noexcept {
  char nothing = 0;
  return PMPI_Send(&nothing, 1, datatype, MPI_PROC_NULL, 0, world->comm) == MPI_SUCCESS;
}

}  // namespace

message::Layout Datatype::times(std::int64_t count) const {
  return count == 1 ? layout_ : message::Layout::contiguous(count, layout_);
}

const Datatype& type_at(MPI_Datatype datatype) {
  const std::uint64_t handle = number_of(datatype);
  const std::uint64_t now = generation.load(std::memory_order_acquire);
  Known& last = known_at(handle);
  if (last.handle == handle && last.generation == now) return *last.type;
  DatatypePtr found;
  {
    const std::lock_guard lock(mutex);
    if (const auto at = table().find(handle); at != table().end()) found = at->second;
  }
  if (!found) {
    require(is_committed(datatype), "a datatype that isn't committed can't be communicated");
    found = std::make_shared<const Datatype>(decode(datatype), leaf_bytes(datatype),
                                             is_named(datatype));
    const std::lock_guard lock(mutex);
    // Another thread may have been faster: what it knows stays.
    found = table().try_emplace(handle, found).first->second;
  }
  last = {handle, now, found.get()};
  return *last.type;
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
