// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/calls_exchange.cpp: the collectives that only move: gather, scatter, all to all.
#include "mpi/counts.h"
#include "mpi/staged.h"

using namespace quadriga::mpi;
using Use = Staged::Use;

namespace {

// That of a buffer that counts on the root alone; the others' is used unless the root has it all.
Use at_root(MPI_Comm comm, int root, Use use) { return is_root(comm, root) ? use : Use::none; }
Use of_member(int root, Use use) {
  return root == MPI_ROOT || root == MPI_PROC_NULL ? Use::none : use;
}

}  // namespace

extern "C" {

int FORM(MPI_Gather)(const void* from, Count from_count, MPI_Datatype from_type, void* into,
                     Count count, MPI_Datatype type, int root, MPI_Comm comm) {
  if (!stages(Function::gather))
    return FORM(PMPI_Gather)(from, from_count, from_type, into, count, type, root, comm);
  return guarded(comm, [&] {
    const Staged part(Function::gather, from, parts_of(from_count, from_type),
                      of_member(root, Use::read));
    Staged all(Function::gather, into, parts_of(std::int64_t{count} * partners(comm), type),
               at_root(comm, root, result_use(from)));
    return all.finish(FORM(PMPI_Gather)(part.pointer(), from_count, from_type, all.pointer(), count,
                                        type, root, comm));
  });
}

int FORM(MPI_Gatherv)(const void* from, Count from_count, MPI_Datatype from_type, void* into,
                      const Count* counts, const Distance* places, MPI_Datatype type, int root,
                      MPI_Comm comm) {
  if (!stages(Function::gatherv))
    return FORM(PMPI_Gatherv)(from, from_count, from_type, into, counts, places, type, root, comm);
  return guarded(comm, [&] {
    const bool root_here = is_root(comm, root);
    const Staged part(Function::gatherv, from, parts_of(from_count, from_type),
                      of_member(root, Use::read));
    Staged all(Function::gatherv, into,
               root_here ? parts_of(counts, places, type, partners(comm)) : StagedParts{},
               root_here ? result_use(from) : Use::none);
    return all.finish(FORM(PMPI_Gatherv)(part.pointer(), from_count, from_type, all.pointer(),
                                         counts, places, type, root, comm));
  });
}

int FORM(MPI_Scatter)(const void* from, Count count, MPI_Datatype type, void* into,
                      Count into_count, MPI_Datatype into_type, int root, MPI_Comm comm) {
  if (!stages(Function::scatter))
    return FORM(PMPI_Scatter)(from, count, type, into, into_count, into_type, root, comm);
  return guarded(comm, [&] {
    const Staged all(Function::scatter, from, parts_of(std::int64_t{count} * partners(comm), type),
                     at_root(comm, root, Use::read));
    Staged part(Function::scatter, into, parts_of(into_count, into_type),
                of_member(root, Use::write));
    return part.finish(FORM(PMPI_Scatter)(all.pointer(), count, type, part.pointer(), into_count,
                                          into_type, root, comm));
  });
}

int FORM(MPI_Scatterv)(const void* from, const Count* counts, const Distance* places,
                       MPI_Datatype type, void* into, Count into_count, MPI_Datatype into_type,
                       int root, MPI_Comm comm) {
  if (!stages(Function::scatterv))
    return FORM(PMPI_Scatterv)(from, counts, places, type, into, into_count, into_type, root, comm);
  return guarded(comm, [&] {
    const bool root_here = is_root(comm, root);
    const Staged all(Function::scatterv, from,
                     root_here ? parts_of(counts, places, type, partners(comm)) : StagedParts{},
                     root_here ? Use::read : Use::none);
    Staged part(Function::scatterv, into, parts_of(into_count, into_type),
                of_member(root, Use::write));
    return part.finish(FORM(PMPI_Scatterv)(all.pointer(), counts, places, type, part.pointer(),
                                           into_count, into_type, root, comm));
  });
}

int FORM(MPI_Allgather)(const void* from, Count from_count, MPI_Datatype from_type, void* into,
                        Count count, MPI_Datatype type, MPI_Comm comm) {
  if (!stages(Function::allgather))
    return FORM(PMPI_Allgather)(from, from_count, from_type, into, count, type, comm);
  return guarded(comm, [&] {
    const Staged part(Function::allgather, from, parts_of(from_count, from_type), Use::read);
    Staged all(Function::allgather, into, parts_of(std::int64_t{count} * partners(comm), type),
               result_use(from));
    return all.finish(FORM(PMPI_Allgather)(part.pointer(), from_count, from_type, all.pointer(),
                                           count, type, comm));
  });
}

int FORM(MPI_Allgatherv)(const void* from, Count from_count, MPI_Datatype from_type, void* into,
                         const Count* counts, const Distance* places, MPI_Datatype type,
                         MPI_Comm comm) {
  if (!stages(Function::allgatherv))
    return FORM(PMPI_Allgatherv)(from, from_count, from_type, into, counts, places, type, comm);
  return guarded(comm, [&] {
    const Staged part(Function::allgatherv, from, parts_of(from_count, from_type), Use::read);
    Staged all(Function::allgatherv, into, parts_of(counts, places, type, partners(comm)),
               result_use(from));
    return all.finish(FORM(PMPI_Allgatherv)(part.pointer(), from_count, from_type, all.pointer(),
                                            counts, places, type, comm));
  });
}

int FORM(MPI_Alltoall)(const void* from, Count from_count, MPI_Datatype from_type, void* into,
                       Count count, MPI_Datatype type, MPI_Comm comm) {
  if (!stages(Function::alltoall))
    return FORM(PMPI_Alltoall)(from, from_count, from_type, into, count, type, comm);
  return guarded(comm, [&] {
    const std::int64_t ranks = partners(comm);
    const Staged given(Function::alltoall, from, parts_of(from_count * ranks, from_type),
                       Use::read);
    Staged result(Function::alltoall, into, parts_of(count * ranks, type), result_use(from));
    return result.finish(FORM(PMPI_Alltoall)(given.pointer(), from_count, from_type,
                                             result.pointer(), count, type, comm));
  });
}

int FORM(MPI_Alltoallv)(const void* from, const Count* from_counts, const Distance* from_places,
                        MPI_Datatype from_type, void* into, const Count* counts,
                        const Distance* places, MPI_Datatype type, MPI_Comm comm) {
  if (!stages(Function::alltoallv))
    return FORM(PMPI_Alltoallv)(from, from_counts, from_places, from_type, into, counts, places,
                                type, comm);
  return guarded(comm, [&] {
    const int ranks = partners(comm);
    const bool in_place = from == MPI_IN_PLACE;
    const Staged given(
        Function::alltoallv, from,
        in_place ? StagedParts{} : parts_of(from_counts, from_places, from_type, ranks), Use::read);
    Staged result(Function::alltoallv, into, parts_of(counts, places, type, ranks),
                  result_use(from));
    return result.finish(FORM(PMPI_Alltoallv)(given.pointer(), from_counts, from_places, from_type,
                                              result.pointer(), counts, places, type, comm));
  });
}

int FORM(MPI_Alltoallw)(const void* from, const Count* from_counts, const Distance* from_offsets,
                        const MPI_Datatype* from_types, void* into, const Count* counts,
                        const Distance* offsets, const MPI_Datatype* types, MPI_Comm comm) {
  if (!stages(Function::alltoallw))
    return FORM(PMPI_Alltoallw)(from, from_counts, from_offsets, from_types, into, counts, offsets,
                                types, comm);
  return guarded(comm, [&] {
    const int ranks = partners(comm);
    const bool in_place = from == MPI_IN_PLACE;
    const Staged given(
        Function::alltoallw, from,
        in_place ? StagedParts{} : parts_of(from_counts, from_offsets, from_types, ranks),
        Use::read);
    Staged result(Function::alltoallw, into, parts_of(counts, offsets, types, ranks),
                  result_use(from));
    return result.finish(FORM(PMPI_Alltoallw)(given.pointer(), from_counts, from_offsets,
                                              from_types, result.pointer(), counts, offsets, types,
                                              comm));
  });
}

}  // extern "C"
