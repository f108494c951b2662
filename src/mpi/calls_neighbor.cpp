// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/calls_neighbor.cpp: the collectives among the neighbours of a topology. A neighbour that
// there isn't sends nothing: its part of the result stays as it was.
#include "mpi/counts.h"
#include "mpi/staged.h"

using namespace quadriga::mpi;
using Use = Staged::Use;

extern "C" {

int FORM(MPI_Neighbor_allgather)(const void* from, Count from_count, MPI_Datatype from_type,
                                 void* into, Count count, MPI_Datatype type, MPI_Comm comm) {
  if (!stages(Function::neighbor_allgather))
    return FORM(PMPI_Neighbor_allgather)(from, from_count, from_type, into, count, type, comm);
  return guarded(comm, [&] {
    const std::int64_t sources = neighbors(comm).sources;
    const Staged part(Function::neighbor_allgather, from, parts_of(from_count, from_type),
                      Use::read);
    Staged all(Function::neighbor_allgather, into, parts_of(count * sources, type), Use::both);
    return all.finish(FORM(PMPI_Neighbor_allgather)(part.pointer(), from_count, from_type,
                                                    all.pointer(), count, type, comm));
  });
}

int FORM(MPI_Neighbor_allgatherv)(const void* from, Count from_count, MPI_Datatype from_type,
                                  void* into, const Count* counts, const Distance* places,
                                  MPI_Datatype type, MPI_Comm comm) {
  if (!stages(Function::neighbor_allgatherv))
    return FORM(PMPI_Neighbor_allgatherv)(from, from_count, from_type, into, counts, places, type,
                                          comm);
  return guarded(comm, [&] {
    const Staged part(Function::neighbor_allgatherv, from, parts_of(from_count, from_type),
                      Use::read);
    Staged all(Function::neighbor_allgatherv, into,
               parts_of(counts, places, type, neighbors(comm).sources), Use::both);
    return all.finish(FORM(PMPI_Neighbor_allgatherv)(part.pointer(), from_count, from_type,
                                                     all.pointer(), counts, places, type, comm));
  });
}

int FORM(MPI_Neighbor_alltoall)(const void* from, Count from_count, MPI_Datatype from_type,
                                void* into, Count count, MPI_Datatype type, MPI_Comm comm) {
  if (!stages(Function::neighbor_alltoall))
    return FORM(PMPI_Neighbor_alltoall)(from, from_count, from_type, into, count, type, comm);
  return guarded(comm, [&] {
    const auto [sources, destinations] = neighbors(comm);
    const Staged given(Function::neighbor_alltoall, from,
                       parts_of(std::int64_t{from_count} * destinations, from_type), Use::read);
    Staged result(Function::neighbor_alltoall, into, parts_of(std::int64_t{count} * sources, type),
                  Use::both);
    return result.finish(FORM(PMPI_Neighbor_alltoall)(given.pointer(), from_count, from_type,
                                                      result.pointer(), count, type, comm));
  });
}

int FORM(MPI_Neighbor_alltoallv)(const void* from, const Count* from_counts,
                                 const Distance* from_places, MPI_Datatype from_type, void* into,
                                 const Count* counts, const Distance* places, MPI_Datatype type,
                                 MPI_Comm comm) {
  if (!stages(Function::neighbor_alltoallv))
    return FORM(PMPI_Neighbor_alltoallv)(from, from_counts, from_places, from_type, into, counts,
                                         places, type, comm);
  return guarded(comm, [&] {
    const auto [sources, destinations] = neighbors(comm);
    const Staged given(Function::neighbor_alltoallv, from,
                       parts_of(from_counts, from_places, from_type, destinations), Use::read);
    Staged result(Function::neighbor_alltoallv, into, parts_of(counts, places, type, sources),
                  Use::both);
    return result.finish(FORM(PMPI_Neighbor_alltoallv)(given.pointer(), from_counts, from_places,
                                                       from_type, result.pointer(), counts, places,
                                                       type, comm));
  });
}

int FORM(MPI_Neighbor_alltoallw)(const void* from, const Count* from_counts,
                                 const MPI_Aint* from_offsets, const MPI_Datatype* from_types,
                                 void* into, const Count* counts, const MPI_Aint* offsets,
                                 const MPI_Datatype* types, MPI_Comm comm) {
  if (!stages(Function::neighbor_alltoallw))
    return FORM(PMPI_Neighbor_alltoallw)(from, from_counts, from_offsets, from_types, into, counts,
                                         offsets, types, comm);
  return guarded(comm, [&] {
    const auto [sources, destinations] = neighbors(comm);
    const Staged given(Function::neighbor_alltoallw, from,
                       parts_of(from_counts, from_offsets, from_types, destinations), Use::read);
    Staged result(Function::neighbor_alltoallw, into, parts_of(counts, offsets, types, sources),
                  Use::both);
    return result.finish(FORM(PMPI_Neighbor_alltoallw)(given.pointer(), from_counts, from_offsets,
                                                       from_types, result.pointer(), counts,
                                                       offsets, types, comm));
  });
}

}  // extern "C"
