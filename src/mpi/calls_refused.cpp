// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/calls_refused.cpp: buffered sends, and what else of messages refuses memory of devices.
#include "mpi/refused.h"

using namespace quadriga::mpi;

extern "C" {

int MPI_Bsend(const void* from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  if (is_refused("MPI_Bsend", from)) return raise(comm, MPI_ERR_BUFFER);
  return PMPI_Bsend(from, count, type, to, tag, comm);
}

int MPI_Ibsend(const void* from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request* request) {
  if (is_refused("MPI_Ibsend", from)) return raise(comm, MPI_ERR_BUFFER);
  return PMPI_Ibsend(from, count, type, to, tag, comm, request);
}

int MPI_Bsend_init(const void* from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                   MPI_Request* request) {
  if (is_refused("MPI_Bsend_init", from)) return raise(comm, MPI_ERR_BUFFER);
  return PMPI_Bsend_init(from, count, type, to, tag, comm, request);
}

int MPI_Reduce_local(const void* from, void* into, int count, MPI_Datatype type, MPI_Op op) {
  if (is_refused("MPI_Reduce_local", from, into)) return raise(MPI_COMM_WORLD, MPI_ERR_BUFFER);
  return PMPI_Reduce_local(from, into, count, type, op);
}

int MPI_Pack_external(const char* format, const void* from, int count, MPI_Datatype type,
                      void* into, MPI_Aint size, MPI_Aint* position) {
  if (is_refused("MPI_Pack_external", from, into)) return raise(MPI_COMM_WORLD, MPI_ERR_BUFFER);
  return PMPI_Pack_external(format, from, count, type, into, size, position);
}

int MPI_Unpack_external(const char* format, const void* from, MPI_Aint size, MPI_Aint* position,
                        void* into, int count, MPI_Datatype type) {
  if (is_refused("MPI_Unpack_external", from, into)) return raise(MPI_COMM_WORLD, MPI_ERR_BUFFER);
  return PMPI_Unpack_external(format, from, size, position, into, count, type);
}

}  // extern "C"
