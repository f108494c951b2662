// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/calls_nonblocking.cpp: non-blocking collectives refuse memory of devices.
#include "mpi/refused.h"

using namespace quadriga::mpi;

extern "C" {

int MPI_Ibcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm,
               MPI_Request* request) {
  if (is_refused("MPI_Ibcast", buffer)) return raise(comm, MPI_ERR_BUFFER);
  return PMPI_Ibcast(buffer, count, type, root, comm, request);
}

int MPI_Ireduce(const void* from, void* into, int count, MPI_Datatype type, MPI_Op op, int root,
                MPI_Comm comm, MPI_Request* request) {
  if (is_refused("MPI_Ireduce", from, into)) return raise(comm, MPI_ERR_BUFFER);
  return PMPI_Ireduce(from, into, count, type, op, root, comm, request);
}

int MPI_Iallreduce(const void* from, void* into, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, MPI_Request* request) {
  if (is_refused("MPI_Iallreduce", from, into)) return raise(comm, MPI_ERR_BUFFER);
  return PMPI_Iallreduce(from, into, count, type, op, comm, request);
}

int MPI_Iscan(const void* from, void* into, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
              MPI_Request* request) {
  if (is_refused("MPI_Iscan", from, into)) return raise(comm, MPI_ERR_BUFFER);
  return PMPI_Iscan(from, into, count, type, op, comm, request);
}

int MPI_Iexscan(const void* from, void* into, int count, MPI_Datatype type, MPI_Op op,
                MPI_Comm comm, MPI_Request* request) {
  if (is_refused("MPI_Iexscan", from, into)) return raise(comm, MPI_ERR_BUFFER);
  return PMPI_Iexscan(from, into, count, type, op, comm, request);
}

int MPI_Ireduce_scatter_block(const void* from, void* into, int count, MPI_Datatype type, MPI_Op op,
                              MPI_Comm comm, MPI_Request* request) {
  if (is_refused("MPI_Ireduce_scatter_block", from, into)) return raise(comm, MPI_ERR_BUFFER);
  return PMPI_Ireduce_scatter_block(from, into, count, type, op, comm, request);
}

int MPI_Ireduce_scatter(const void* from, void* into, const int* counts, MPI_Datatype type,
                        MPI_Op op, MPI_Comm comm, MPI_Request* request) {
  if (is_refused("MPI_Ireduce_scatter", from, into)) return raise(comm, MPI_ERR_BUFFER);
  return PMPI_Ireduce_scatter(from, into, counts, type, op, comm, request);
}

int MPI_Igather(const void* from, int send_count, MPI_Datatype send_type, void* into, int count,
                MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request) {
  if (is_refused("MPI_Igather", from, into)) return raise(comm, MPI_ERR_BUFFER);
  return PMPI_Igather(from, send_count, send_type, into, count, type, root, comm, request);
}

int MPI_Igatherv(const void* from, int send_count, MPI_Datatype send_type, void* into,
                 const int* counts, const int* places, MPI_Datatype type, int root, MPI_Comm comm,
                 MPI_Request* request) {
  if (is_refused("MPI_Igatherv", from, into)) return raise(comm, MPI_ERR_BUFFER);
  return PMPI_Igatherv(from, send_count, send_type, into, counts, places, type, root, comm,
                       request);
}

int MPI_Iscatter(const void* from, int send_count, MPI_Datatype send_type, void* into, int count,
                 MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request) {
  if (is_refused("MPI_Iscatter", from, into)) return raise(comm, MPI_ERR_BUFFER);
  return PMPI_Iscatter(from, send_count, send_type, into, count, type, root, comm, request);
}

int MPI_Iscatterv(const void* from, const int* send_counts, const int* send_places,
                  MPI_Datatype send_type, void* into, int count, MPI_Datatype type, int root,
                  MPI_Comm comm, MPI_Request* request) {
  if (is_refused("MPI_Iscatterv", from, into)) return raise(comm, MPI_ERR_BUFFER);
  return PMPI_Iscatterv(from, send_counts, send_places, send_type, into, count, type, root, comm,
                        request);
}

int MPI_Iallgather(const void* from, int send_count, MPI_Datatype send_type, void* into, int count,
                   MPI_Datatype type, MPI_Comm comm, MPI_Request* request) {
  if (is_refused("MPI_Iallgather", from, into)) return raise(comm, MPI_ERR_BUFFER);
  return PMPI_Iallgather(from, send_count, send_type, into, count, type, comm, request);
}

int MPI_Iallgatherv(const void* from, int send_count, MPI_Datatype send_type, void* into,
                    const int* counts, const int* places, MPI_Datatype type, MPI_Comm comm,
                    MPI_Request* request) {
  if (is_refused("MPI_Iallgatherv", from, into)) return raise(comm, MPI_ERR_BUFFER);
  return PMPI_Iallgatherv(from, send_count, send_type, into, counts, places, type, comm, request);
}

int MPI_Ialltoall(const void* from, int send_count, MPI_Datatype send_type, void* into, int count,
                  MPI_Datatype type, MPI_Comm comm, MPI_Request* request) {
  if (is_refused("MPI_Ialltoall", from, into)) return raise(comm, MPI_ERR_BUFFER);
  return PMPI_Ialltoall(from, send_count, send_type, into, count, type, comm, request);
}

int MPI_Ialltoallv(const void* from, const int* send_counts, const int* send_places,
                   MPI_Datatype send_type, void* into, const int* counts, const int* places,
                   MPI_Datatype type, MPI_Comm comm, MPI_Request* request) {
  if (is_refused("MPI_Ialltoallv", from, into)) return raise(comm, MPI_ERR_BUFFER);
  return PMPI_Ialltoallv(from, send_counts, send_places, send_type, into, counts, places, type,
                         comm, request);
}

int MPI_Ialltoallw(const void* from, const int* send_counts, const int* send_places,
                   const MPI_Datatype* send_types, void* into, const int* counts, const int* places,
                   const MPI_Datatype* types, MPI_Comm comm, MPI_Request* request) {
  if (is_refused("MPI_Ialltoallw", from, into)) return raise(comm, MPI_ERR_BUFFER);
  return PMPI_Ialltoallw(from, send_counts, send_places, send_types, into, counts, places, types,
                         comm, request);
}

int MPI_Ineighbor_allgather(const void* from, int send_count, MPI_Datatype send_type, void* into,
                            int count, MPI_Datatype type, MPI_Comm comm, MPI_Request* request) {
  if (is_refused("MPI_Ineighbor_allgather", from, into)) return raise(comm, MPI_ERR_BUFFER);
  return PMPI_Ineighbor_allgather(from, send_count, send_type, into, count, type, comm, request);
}

int MPI_Ineighbor_allgatherv(const void* from, int send_count, MPI_Datatype send_type, void* into,
                             const int* counts, const int* places, MPI_Datatype type, MPI_Comm comm,
                             MPI_Request* request) {
  if (is_refused("MPI_Ineighbor_allgatherv", from, into)) return raise(comm, MPI_ERR_BUFFER);
  return PMPI_Ineighbor_allgatherv(from, send_count, send_type, into, counts, places, type, comm,
                                   request);
}

int MPI_Ineighbor_alltoall(const void* from, int send_count, MPI_Datatype send_type, void* into,
                           int count, MPI_Datatype type, MPI_Comm comm, MPI_Request* request) {
  if (is_refused("MPI_Ineighbor_alltoall", from, into)) return raise(comm, MPI_ERR_BUFFER);
  return PMPI_Ineighbor_alltoall(from, send_count, send_type, into, count, type, comm, request);
}

int MPI_Ineighbor_alltoallv(const void* from, const int* send_counts, const int* send_places,
                            MPI_Datatype send_type, void* into, const int* counts,
                            const int* places, MPI_Datatype type, MPI_Comm comm,
                            MPI_Request* request) {
  if (is_refused("MPI_Ineighbor_alltoallv", from, into)) return raise(comm, MPI_ERR_BUFFER);
  return PMPI_Ineighbor_alltoallv(from, send_counts, send_places, send_type, into, counts, places,
                                  type, comm, request);
}

int MPI_Ineighbor_alltoallw(const void* from, const int* send_counts, const MPI_Aint* send_places,
                            const MPI_Datatype* send_types, void* into, const int* counts,
                            const MPI_Aint* places, const MPI_Datatype* types, MPI_Comm comm,
                            MPI_Request* request) {
  if (is_refused("MPI_Ineighbor_alltoallw", from, into)) return raise(comm, MPI_ERR_BUFFER);
  return PMPI_Ineighbor_alltoallw(from, send_counts, send_places, send_types, into, counts, places,
                                  types, comm, request);
}

}  // extern "C"
