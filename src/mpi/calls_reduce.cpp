// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/calls_reduce.cpp: MPI_Bcast and the collectives that combine.
#include <numeric>

#include "mpi/counts.h"
#include "mpi/staged.h"
#include "mpi/together.h"

using namespace quadriga::mpi;
using Use = Staged::Use;

extern "C" {

int FORM(MPI_Bcast)(void* buffer, Count count, MPI_Datatype type, int root, MPI_Comm comm) {
  if (!stages(Function::bcast)) return FORM(PMPI_Bcast)(buffer, count, type, root, comm);
  return guarded(comm, [&] {
    if (const auto code = broadcast_together(buffer, count, type, root, comm)) return *code;
    const Use other = root == MPI_PROC_NULL ? Use::none : Use::write;
    Staged all(Function::bcast, buffer, parts_of(count, type),
               is_root(comm, root) ? Use::read : other);
    return all.finish(FORM(PMPI_Bcast)(all.pointer(), count, type, root, comm));
  });
}

int FORM(MPI_Reduce)(const void* from, void* into, Count count, MPI_Datatype type, MPI_Op op,
                     int root, MPI_Comm comm) {
  if (!stages(Function::reduce)) return FORM(PMPI_Reduce)(from, into, count, type, op, root, comm);
  return guarded(comm, [&] {
    const Staged given(Function::reduce, from, parts_of(count, type),
                       root == MPI_ROOT || root == MPI_PROC_NULL ? Use::none : Use::read,
                       needs_neighborhood(op));
    Staged result(Function::reduce, into, parts_of(count, type),
                  is_root(comm, root) ? result_use(from) : Use::none, needs_neighborhood(op));
    return result.finish(
        FORM(PMPI_Reduce)(given.pointer(), result.pointer(), count, type, op, root, comm));
  });
}

int FORM(MPI_Allreduce)(const void* from, void* into, Count count, MPI_Datatype type, MPI_Op op,
                        MPI_Comm comm) {
  if (!stages(Function::allreduce)) return FORM(PMPI_Allreduce)(from, into, count, type, op, comm);
  return guarded(comm, [&] {
    if (const auto code = all_reduce_together(from, into, count, type, op, comm)) return *code;
    const Staged given(Function::allreduce, from, parts_of(count, type), Use::read,
                       needs_neighborhood(op));
    Staged result(Function::allreduce, into, parts_of(count, type), result_use(from),
                  needs_neighborhood(op));
    return result.finish(
        FORM(PMPI_Allreduce)(given.pointer(), result.pointer(), count, type, op, comm));
  });
}

int FORM(MPI_Scan)(const void* from, void* into, Count count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm) {
  if (!stages(Function::scan)) return FORM(PMPI_Scan)(from, into, count, type, op, comm);
  return guarded(comm, [&] {
    const Staged given(Function::scan, from, parts_of(count, type), Use::read,
                       needs_neighborhood(op));
    Staged result(Function::scan, into, parts_of(count, type), result_use(from),
                  needs_neighborhood(op));
    return result.finish(FORM(PMPI_Scan)(given.pointer(), result.pointer(), count, type, op, comm));
  });
}

// The first rank's result is left as it is.
int FORM(MPI_Exscan)(const void* from, void* into, Count count, MPI_Datatype type, MPI_Op op,
                     MPI_Comm comm) {
  if (!stages(Function::exscan)) return FORM(PMPI_Exscan)(from, into, count, type, op, comm);
  return guarded(comm, [&] {
    const Staged given(Function::exscan, from, parts_of(count, type), Use::read,
                       needs_neighborhood(op));
    Staged result(Function::exscan, into, parts_of(count, type), Use::both, needs_neighborhood(op));
    return result.finish(
        FORM(PMPI_Exscan)(given.pointer(), result.pointer(), count, type, op, comm));
  });
}

int FORM(MPI_Reduce_scatter)(const void* from, void* into, const Count* counts, MPI_Datatype type,
                             MPI_Op op, MPI_Comm comm) {
  if (!stages(Function::reduce_scatter))
    return FORM(PMPI_Reduce_scatter)(from, into, counts, type, op, comm);
  return guarded(comm, [&] {
    int rank = 0, size = 0;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    const std::int64_t all = std::accumulate(counts, counts + size, std::int64_t{0});
    const bool in_place = from == MPI_IN_PLACE;
    const Staged given(Function::reduce_scatter, from, parts_of(all, type), Use::read,
                       needs_neighborhood(op));
    Staged result(Function::reduce_scatter, into, parts_of(in_place ? all : counts[rank], type),
                  result_use(from), needs_neighborhood(op));
    return result.finish(
        FORM(PMPI_Reduce_scatter)(given.pointer(), result.pointer(), counts, type, op, comm));
  });
}

int FORM(MPI_Reduce_scatter_block)(const void* from, void* into, Count count, MPI_Datatype type,
                                   MPI_Op op, MPI_Comm comm) {
  if (!stages(Function::reduce_scatter_block))
    return FORM(PMPI_Reduce_scatter_block)(from, into, count, type, op, comm);
  return guarded(comm, [&] {
    int size = 0;
    PMPI_Comm_size(comm, &size);
    const std::int64_t all = std::int64_t{count} * size;
    const bool in_place = from == MPI_IN_PLACE;
    const Staged given(Function::reduce_scatter_block, from, parts_of(all, type), Use::read,
                       needs_neighborhood(op));
    Staged result(Function::reduce_scatter_block, into, parts_of(in_place ? all : count, type),
                  result_use(from), needs_neighborhood(op));
    return result.finish(
        FORM(PMPI_Reduce_scatter_block)(given.pointer(), result.pointer(), count, type, op, comm));
  });
}

}  // extern "C"
