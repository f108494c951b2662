// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/calls_partitioned.cpp: partitioned messages of MPI 4, and buffers for MPI_Bsend, refuse
// memory of devices. Partitioned messages have large counts only.
#include "mpi/counts.h"
#include "mpi/of_mpi_4.h"
#include "mpi/refused.h"

using namespace quadriga::mpi;

extern "C" {

OF_MPI_4(Psend_init, const void* from, int partitions, MPI_Count count, MPI_Datatype type, int to,
         int tag, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  if (is_refused(__func__, touches_device(from, type))) return raise(comm, MPI_ERR_BUFFER);
  return of_mpi_4(comm, PMPI_Psend_init, from, partitions, count, type, to, tag, comm, info,
                  request);
}

OF_MPI_4(Precv_init, void* into, int partitions, MPI_Count count, MPI_Datatype type, int source,
         int tag, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  if (is_refused(__func__, touches_device(into, type))) return raise(comm, MPI_ERR_BUFFER);
  return of_mpi_4(comm, PMPI_Precv_init, into, partitions, count, type, source, tag, comm, info,
                  request);
}

}  // extern "C"
