// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/calls_nonblocking.cpp: non-blocking collectives refuse memory of devices.
#include "mpi/counts.h"
#include "mpi/refused.h"

using namespace quadriga::mpi;

extern "C" {

int FORM(MPI_Ibcast)(void* buffer, Count count, MPI_Datatype type, int root, MPI_Comm comm,
                     MPI_Request* request) {
  if (is_refused(__func__, touches_device(buffer, type))) return raise(comm, MPI_ERR_BUFFER);
  return FORM(PMPI_Ibcast)(buffer, count, type, root, comm, request);
}

int FORM(MPI_Ireduce)(const void* from, void* into, Count count, MPI_Datatype type, MPI_Op op,
                      int root, MPI_Comm comm, MPI_Request* request) {
  if (is_refused(__func__, touches_device(from, type) || touches_device(into, type)))
    return raise(comm, MPI_ERR_BUFFER);
  return FORM(PMPI_Ireduce)(from, into, count, type, op, root, comm, request);
}

int FORM(MPI_Iallreduce)(const void* from, void* into, Count count, MPI_Datatype type, MPI_Op op,
                         MPI_Comm comm, MPI_Request* request) {
  if (is_refused(__func__, touches_device(from, type) || touches_device(into, type)))
    return raise(comm, MPI_ERR_BUFFER);
  return FORM(PMPI_Iallreduce)(from, into, count, type, op, comm, request);
}

int FORM(MPI_Iscan)(const void* from, void* into, Count count, MPI_Datatype type, MPI_Op op,
                    MPI_Comm comm, MPI_Request* request) {
  if (is_refused(__func__, touches_device(from, type) || touches_device(into, type)))
    return raise(comm, MPI_ERR_BUFFER);
  return FORM(PMPI_Iscan)(from, into, count, type, op, comm, request);
}

int FORM(MPI_Iexscan)(const void* from, void* into, Count count, MPI_Datatype type, MPI_Op op,
                      MPI_Comm comm, MPI_Request* request) {
  if (is_refused(__func__, touches_device(from, type) || touches_device(into, type)))
    return raise(comm, MPI_ERR_BUFFER);
  return FORM(PMPI_Iexscan)(from, into, count, type, op, comm, request);
}

int FORM(MPI_Ireduce_scatter_block)(const void* from, void* into, Count count, MPI_Datatype type,
                                    MPI_Op op, MPI_Comm comm, MPI_Request* request) {
  if (is_refused(__func__, touches_device(from, type) || touches_device(into, type)))
    return raise(comm, MPI_ERR_BUFFER);
  return FORM(PMPI_Ireduce_scatter_block)(from, into, count, type, op, comm, request);
}

int FORM(MPI_Ireduce_scatter)(const void* from, void* into, const Count* counts, MPI_Datatype type,
                              MPI_Op op, MPI_Comm comm, MPI_Request* request) {
  if (is_refused(__func__, touches_device(from, type) || touches_device(into, type)))
    return raise(comm, MPI_ERR_BUFFER);
  return FORM(PMPI_Ireduce_scatter)(from, into, counts, type, op, comm, request);
}

int FORM(MPI_Igather)(const void* from, Count send_count, MPI_Datatype send_type, void* into,
                      Count count, MPI_Datatype type, int root, MPI_Comm comm,
                      MPI_Request* request) {
  if (is_refused(__func__,
                 touches_device(from, send_type) || touches_device(into, type, root, comm)))
    return raise(comm, MPI_ERR_BUFFER);
  return FORM(PMPI_Igather)(from, send_count, send_type, into, count, type, root, comm, request);
}

int FORM(MPI_Igatherv)(const void* from, Count send_count, MPI_Datatype send_type, void* into,
                       const Count* counts, const Distance* places, MPI_Datatype type, int root,
                       MPI_Comm comm, MPI_Request* request) {
  if (is_refused(__func__,
                 touches_device(from, send_type) || touches_device(into, type, root, comm)))
    return raise(comm, MPI_ERR_BUFFER);
  return FORM(PMPI_Igatherv)(from, send_count, send_type, into, counts, places, type, root, comm,
                             request);
}

int FORM(MPI_Iscatter)(const void* from, Count send_count, MPI_Datatype send_type, void* into,
                       Count count, MPI_Datatype type, int root, MPI_Comm comm,
                       MPI_Request* request) {
  if (is_refused(__func__,
                 touches_device(from, send_type, root, comm) || touches_device(into, type)))
    return raise(comm, MPI_ERR_BUFFER);
  return FORM(PMPI_Iscatter)(from, send_count, send_type, into, count, type, root, comm, request);
}

int FORM(MPI_Iscatterv)(const void* from, const Count* send_counts, const Distance* send_places,
                        MPI_Datatype send_type, void* into, Count count, MPI_Datatype type,
                        int root, MPI_Comm comm, MPI_Request* request) {
  if (is_refused(__func__,
                 touches_device(from, send_type, root, comm) || touches_device(into, type)))
    return raise(comm, MPI_ERR_BUFFER);
  return FORM(PMPI_Iscatterv)(from, send_counts, send_places, send_type, into, count, type, root,
                              comm, request);
}

int FORM(MPI_Iallgather)(const void* from, Count send_count, MPI_Datatype send_type, void* into,
                         Count count, MPI_Datatype type, MPI_Comm comm, MPI_Request* request) {
  if (is_refused(__func__, touches_device(from, send_type) || touches_device(into, type)))
    return raise(comm, MPI_ERR_BUFFER);
  return FORM(PMPI_Iallgather)(from, send_count, send_type, into, count, type, comm, request);
}

int FORM(MPI_Iallgatherv)(const void* from, Count send_count, MPI_Datatype send_type, void* into,
                          const Count* counts, const Distance* places, MPI_Datatype type,
                          MPI_Comm comm, MPI_Request* request) {
  if (is_refused(__func__, touches_device(from, send_type) || touches_device(into, type)))
    return raise(comm, MPI_ERR_BUFFER);
  return FORM(PMPI_Iallgatherv)(from, send_count, send_type, into, counts, places, type, comm,
                                request);
}

int FORM(MPI_Ialltoall)(const void* from, Count send_count, MPI_Datatype send_type, void* into,
                        Count count, MPI_Datatype type, MPI_Comm comm, MPI_Request* request) {
  if (is_refused(__func__, touches_device(from, send_type) || touches_device(into, type)))
    return raise(comm, MPI_ERR_BUFFER);
  return FORM(PMPI_Ialltoall)(from, send_count, send_type, into, count, type, comm, request);
}

int FORM(MPI_Ialltoallv)(const void* from, const Count* send_counts, const Distance* send_places,
                         MPI_Datatype send_type, void* into, const Count* counts,
                         const Distance* places, MPI_Datatype type, MPI_Comm comm,
                         MPI_Request* request) {
  if (is_refused(__func__, touches_device(from, send_type) || touches_device(into, type)))
    return raise(comm, MPI_ERR_BUFFER);
  return FORM(PMPI_Ialltoallv)(from, send_counts, send_places, send_type, into, counts, places,
                               type, comm, request);
}

int FORM(MPI_Ialltoallw)(const void* from, const Count* send_counts, const Distance* send_places,
                         const MPI_Datatype* send_types, void* into, const Count* counts,
                         const Distance* places, const MPI_Datatype* types, MPI_Comm comm,
                         MPI_Request* request) {
  const auto given = [&] { return parts_of(send_counts, send_places, send_types, partners(comm)); };
  const auto result = [&] { return parts_of(counts, places, types, partners(comm)); };
  if (is_refused(__func__, touches_device(from, given) || touches_device(into, result)))
    return raise(comm, MPI_ERR_BUFFER);
  return FORM(PMPI_Ialltoallw)(from, send_counts, send_places, send_types, into, counts, places,
                               types, comm, request);
}

int FORM(MPI_Ineighbor_allgather)(const void* from, Count send_count, MPI_Datatype send_type,
                                  void* into, Count count, MPI_Datatype type, MPI_Comm comm,
                                  MPI_Request* request) {
  if (is_refused(__func__, touches_device(from, send_type) || touches_device(into, type)))
    return raise(comm, MPI_ERR_BUFFER);
  return FORM(PMPI_Ineighbor_allgather)(from, send_count, send_type, into, count, type, comm,
                                        request);
}

int FORM(MPI_Ineighbor_allgatherv)(const void* from, Count send_count, MPI_Datatype send_type,
                                   void* into, const Count* counts, const Distance* places,
                                   MPI_Datatype type, MPI_Comm comm, MPI_Request* request) {
  if (is_refused(__func__, touches_device(from, send_type) || touches_device(into, type)))
    return raise(comm, MPI_ERR_BUFFER);
  return FORM(PMPI_Ineighbor_allgatherv)(from, send_count, send_type, into, counts, places, type,
                                         comm, request);
}

int FORM(MPI_Ineighbor_alltoall)(const void* from, Count send_count, MPI_Datatype send_type,
                                 void* into, Count count, MPI_Datatype type, MPI_Comm comm,
                                 MPI_Request* request) {
  if (is_refused(__func__, touches_device(from, send_type) || touches_device(into, type)))
    return raise(comm, MPI_ERR_BUFFER);
  return FORM(PMPI_Ineighbor_alltoall)(from, send_count, send_type, into, count, type, comm,
                                       request);
}

int FORM(MPI_Ineighbor_alltoallv)(const void* from, const Count* send_counts,
                                  const Distance* send_places, MPI_Datatype send_type, void* into,
                                  const Count* counts, const Distance* places, MPI_Datatype type,
                                  MPI_Comm comm, MPI_Request* request) {
  if (is_refused(__func__, touches_device(from, send_type) || touches_device(into, type)))
    return raise(comm, MPI_ERR_BUFFER);
  return FORM(PMPI_Ineighbor_alltoallv)(from, send_counts, send_places, send_type, into, counts,
                                        places, type, comm, request);
}

int FORM(MPI_Ineighbor_alltoallw)(const void* from, const Count* send_counts,
                                  const MPI_Aint* send_places, const MPI_Datatype* send_types,
                                  void* into, const Count* counts, const MPI_Aint* places,
                                  const MPI_Datatype* types, MPI_Comm comm, MPI_Request* request) {
  const auto given = [&] {
    return parts_of(send_counts, send_places, send_types, neighbors(comm).destinations);
  };
  const auto result = [&] { return parts_of(counts, places, types, neighbors(comm).sources); };
  if (is_refused(__func__, touches_device(from, given) || touches_device(into, result)))
    return raise(comm, MPI_ERR_BUFFER);
  return FORM(PMPI_Ineighbor_alltoallw)(from, send_counts, send_places, send_types, into, counts,
                                        places, types, comm, request);
}

}  // extern "C"
