// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/staged.cpp: copies on the host of what lies on devices, element by element: what lies
// between the elements isn't touched.
#include "mpi/staged.h"

#include <quadriga/error.h>

#include <algorithm>
#include <limits>

#include "mpi/device_buffers.h"

namespace quadriga::mpi {
bool stages(Function function) noexcept {
  if (!taken.sends) return false;
  return device_buffers.load(std::memory_order_relaxed) != nullptr ||
         (world->switches.host && world->switches.takes(function));
}

Staged::Staged(Function function, const void* buffer, StagedParts parts, Use use, bool host_stays)
    : pointer_(const_cast<void*>(buffer)), use_(use) {
  std::erase_if(parts, [](const StagedPart& each) {
    return each.count <= 0 || each.type == MPI_DATATYPE_NULL;
  });
  if (use == Use::none || buffer == MPI_IN_PLACE || parts.empty()) return;
  const auto* const base = static_cast<const std::byte*>(buffer);
  const bool device = std::ranges::any_of(parts, [&](const StagedPart& each) {
    return is_on_device(base + each.offset, 1, each.type);
  });
  const bool taken_over = world->switches.takes(function);
  if (device && !taken_over) fail_switched_off(function);
  if (!device && (host_stays || !world->switches.host || !taken_over)) return;
  std::int64_t first = std::numeric_limits<std::int64_t>::max(), last = 0;
  std::vector<message::Layout> layouts;
  for (const StagedPart& each : parts) {
    layouts.push_back(datatype_of(each.type)->times(each.count));
    const auto bounds = layouts.back().bounds();
    if (layouts.back().bytes() == 0) continue;
    first = std::min(first, each.offset + bounds.first);
    last = std::max(last, each.offset + bounds.second);
  }
  if (first > last) return;
  host_ = std::make_unique<std::byte[]>(static_cast<std::size_t>(last - first));
  std::byte* const here = host_.get() - first;
  for (std::size_t i = 0; i < parts.size(); ++i)
    copies_.push_back(
        {buffer_at(base + parts[i].offset, layouts[i]), {layouts[i], here + parts[i].offset}});
  if (use == Use::read || use == Use::both)
    for (const Copy& each : copies_) move(each.there, each.here);
  pointer_ = here;
  count(world->counters.staged);
}

int Staged::finish(int code) {
  if (code != MPI_SUCCESS) return code;
  if (use_ == Use::write || use_ == Use::both)
    for (const Copy& each : copies_) move(each.here, each.there);
  return MPI_SUCCESS;
}

bool needs_neighborhood(MPI_Op operation) noexcept {
  for (const MPI_Op known : {MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN, MPI_MAXLOC, MPI_MINLOC, MPI_LAND,
                             MPI_BAND, MPI_LOR, MPI_BOR, MPI_LXOR, MPI_BXOR})
    if (operation == known) return false;
  return true;
}

std::int64_t extent_of(MPI_Datatype type) noexcept {
  MPI_Aint least = 0, extent = 0;
  PMPI_Type_get_extent(type, &least, &extent);
  return extent;
}

StagedParts parts_of(std::int64_t count, MPI_Datatype type) { return {{0, count, type}}; }

int partners(MPI_Comm comm) noexcept {
  int is_inter = 0, size = 0;
  PMPI_Comm_test_inter(comm, &is_inter);
  if (is_inter != 0)
    PMPI_Comm_remote_size(comm, &size);
  else
    PMPI_Comm_size(comm, &size);
  return size;
}

bool is_root(MPI_Comm comm, int root) noexcept {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  int is_inter = 0;
  PMPI_Comm_test_inter(comm, &is_inter);
  return is_inter != 0 ? root == MPI_ROOT : root == rank;
}

Neighbors neighbors(MPI_Comm comm) noexcept {
  int kind = MPI_UNDEFINED;
  PMPI_Topo_test(comm, &kind);
  Neighbors found;
  if (kind == MPI_CART) {
    int dimensions = 0;
    PMPI_Cartdim_get(comm, &dimensions);
    found.sources = found.destinations = 2 * dimensions;
  } else if (kind == MPI_GRAPH) {
    int rank = 0, count = 0;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Graph_neighbors_count(comm, rank, &count);
    found.sources = found.destinations = count;
  } else if (kind == MPI_DIST_GRAPH) {
    int is_weighted = 0;
    PMPI_Dist_graph_neighbors_count(comm, &found.sources, &found.destinations, &is_weighted);
  }
  return found;
}

}  // namespace quadriga::mpi
